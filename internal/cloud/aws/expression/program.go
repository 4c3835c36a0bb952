package expression

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

const (
	// mostText is the length in characters of the longest expression, and mostNested the depth of its parentheses.
	mostText, mostNested = 2048, 50
	// mostSteps is the cost of an evaluation in the units of CEL. An arithmetic formula needs less than 50. mostTime is its
	// time. Only comprehensions are interrupted; everything else ends by its cost.
	mostSteps = 2_000
	mostTime  = 100 * time.Millisecond
	// interruptCheck is the number of iterations between two checks of the time.
	interruptCheck = 100
)

// Program is a compiled expression. It keeps its results, because many types have the same variables, and a catalog is
// computed again and again. It is safe for concurrent use.
type Program struct {
	program cel.Program
	// named means that the result may depend on the name of the type.
	named bool

	mu      sync.Mutex
	results map[Variables]int64
}

// environment is the same for all expressions, and expensive to create.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(append(append(declarations(), numberFunctions()...),
		cel.ParserExpressionSizeLimit(mostText), cel.ParserRecursionLimit(mostNested))...)
})

// Compile compiles an expression. An error describes what is wrong with the text or with the type of its result.
func Compile(text string) (*Program, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("setting up the language of expressions: %w", err)
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, errors.New(brief(err))
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.IntType) && !kind.IsExactType(cel.DoubleType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the result is of type %s, want int or double", kind)
	}
	program, err := env.Program(ast, cel.CostLimit(mostSteps), cel.InterruptCheckFrequency(interruptCheck))
	if err != nil {
		return nil, errors.New(brief(err))
	}
	named := strings.Contains(text, nameVariable)
	return &Program{program: program, named: named, results: map[Variables]int64{}}, nil
}

// brief returns the first line of an error of CEL, without the excerpt of the text below it, and with the known
// variables if it is about an unknown one.
func brief(err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "ERROR: <input>:"), "\n")
	if line, undeclared := strings.CutSuffix(line, " (in container '')"); undeclared {
		return line + "; the variables are " + strings.Join(variables, ", ")
	}
	return line
}

// Number evaluates the expression. A double is truncated toward zero. The result is at most math.MaxInt32. Errors: a
// division by zero or another error of evaluation, a number outside of that range, a result that is not a number, too
// many steps, too much time.
func (p *Program) Number(v Variables) (int64, error) {
	if !p.named {
		v.InstanceType = ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if result, known := p.results[v]; known {
		return result, nil
	}
	result, err := p.evaluate(&v)
	if err == nil {
		p.results[v] = result
	}
	return result, err
}

func (p *Program) evaluate(v *Variables) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	out, _, err := p.program.ContextEval(ctx, v)
	if err != nil {
		return 0, errors.New(brief(err))
	}
	var result float64
	switch value := out.(type) {
	case types.Int:
		if value > math.MaxInt32 || value < -math.MaxInt32 {
			return 0, fmt.Errorf("the result is %d, want at most %d", value, math.MaxInt32)
		}
		return int64(value), nil
	case types.Double:
		result = math.Trunc(float64(value))
	default:
		return 0, fmt.Errorf("the result is of type %s, want int or double", out.Type().TypeName())
	}
	if !(math.Abs(result) <= math.MaxInt32) { // also for NaN
		return 0, fmt.Errorf("the result is %v, want at most %d", result, math.MaxInt32)
	}
	return int64(result), nil
}
