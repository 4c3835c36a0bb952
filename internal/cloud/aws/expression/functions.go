package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// numberFunctions are min and max of two numbers. The result is an int if both are, and otherwise a double.
func numberFunctions() []cel.EnvOption {
	return []cel.EnvOption{numberFunction("min", types.IntOne), numberFunction("max", types.IntNegOne)}
}

// numberFunction returns the function whose result is the argument for which the comparison with the other one has not
// the sign of bad.
func numberFunction(name string, bad types.Int) cel.EnvOption {
	choose := cel.BinaryBinding(func(a, b ref.Val) ref.Val {
		compared := a.(traits.Comparer).Compare(b)
		if types.IsError(compared) {
			return compared
		}
		if compared == bad {
			a, b = b, a
		}
		if b.Type() == types.DoubleType && a.Type() == types.IntType {
			return a.ConvertToType(types.DoubleType)
		}
		return a
	})
	var overloads []cel.FunctionOpt
	for _, kinds := range [][2]*cel.Type{
		{cel.IntType, cel.IntType}, {cel.IntType, cel.DoubleType}, {cel.DoubleType, cel.IntType}, {cel.DoubleType, cel.DoubleType},
	} {
		result := cel.DoubleType
		if kinds[0] == cel.IntType && kinds[1] == cel.IntType {
			result = cel.IntType
		}
		overloads = append(overloads, cel.Overload(name+"_"+kinds[0].String()+"_"+kinds[1].String(), kinds[:], result, choose))
	}
	return cel.Function(name, overloads...)
}
