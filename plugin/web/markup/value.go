package markup

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
)

// pipe returns the value of a pipeline, and declares or sets its variables.
func (s *scope) pipe(funcs map[string]any, p *parse.PipeNode) (reflect.Value, error) {
	value, err := s.evaluate(funcs, p)
	if err != nil || p == nil {
		return value, err
	}
	for _, declared := range p.Decl {
		if !p.IsAssign {
			s.variables = append(s.variables, variable{declared.Ident[0], value})
			continue
		}
		for i := range slices.Backward(s.variables) {
			if s.variables[i].name == declared.Ident[0] {
				s.variables[i].value = value
				break
			}
		}
	}
	return value, nil
}

// evaluate returns the value of a pipeline; an invalid one for none.
func (s *scope) evaluate(funcs map[string]any, p *parse.PipeNode) (reflect.Value, error) {
	switch {
	case p == nil:
		return reflect.Value{}, nil
	case len(p.Cmds) != 1:
		return reflect.Value{}, fmt.Errorf("%s: pipelines of more than one command are refused", p)
	}
	args := p.Cmds[0].Args
	called, is := args[0].(*parse.IdentifierNode)
	if !is {
		if len(args) > 1 {
			return reflect.Value{}, fmt.Errorf("%s: only functions have arguments", p)
		}
		return s.operand(funcs, args[0])
	}
	values := make([]reflect.Value, 0, len(args)-1)
	for _, arg := range args[1:] {
		// Once and is false, or is true, what follows may not exist.
		if n := len(values); n > 0 && (called.Ident == "and" && !truth(values[n-1]) || called.Ident == "or" && truth(values[n-1])) {
			break
		}
		value, err := s.operand(funcs, arg)
		if err != nil {
			return reflect.Value{}, err
		}
		values = append(values, value)
	}
	value, err := call(funcs[called.Ident], values)
	if err != nil {
		return reflect.Value{}, fmt.Errorf("%s: %w", p, err)
	}
	return value, nil
}

// operand returns the value of an argument or of a command without arguments.
func (s *scope) operand(funcs map[string]any, node parse.Node) (reflect.Value, error) {
	switch node := node.(type) {
	case *parse.DotNode:
		return s.dot, nil
	case *parse.FieldNode:
		return fields(s.dot, node.Ident)
	case *parse.VariableNode:
		for _, v := range slices.Backward(s.variables) {
			if v.name == node.Ident[0] {
				return fields(v.value, node.Ident[1:])
			}
		}
	case *parse.ChainNode:
		value, err := s.operand(funcs, node.Node)
		if err != nil {
			return value, err
		}
		return fields(value, node.Field)
	case *parse.PipeNode:
		return s.evaluate(funcs, node)
	case *parse.IdentifierNode:
		return call(funcs[node.Ident], nil)
	case *parse.StringNode:
		return reflect.ValueOf(node.Text), nil
	case *parse.BoolNode:
		return reflect.ValueOf(node.True), nil
	case *parse.NumberNode:
		if node.IsInt {
			return reflect.ValueOf(int(node.Int64)), nil
		}
		return reflect.ValueOf(node.Float64), nil
	}
	return reflect.Value{}, fmt.Errorf("%s: such a value is not known", node)
}

// indirect returns what pointers and interfaces lead to; an invalid value for nil.
func indirect(value reflect.Value) reflect.Value {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	return value
}

// fields follows names of fields, or keys of maps.
func fields(value reflect.Value, names []string) (reflect.Value, error) {
	for _, name := range names {
		value = indirect(value)
		switch value.Kind() {
		case reflect.Struct:
			field, found := value.Type().FieldByName(name)
			if !found || !field.IsExported() {
				return reflect.Value{}, fmt.Errorf("%s has no field %s", value.Type(), name)
			}
			var err error
			if value, err = value.FieldByIndexErr(field.Index); err != nil {
				return reflect.Value{}, err
			}
		case reflect.Map:
			if value.Type().Key().Kind() != reflect.String {
				return reflect.Value{}, fmt.Errorf("%s has no keys such as %s", value.Type(), name)
			}
			value = value.MapIndex(reflect.ValueOf(name).Convert(value.Type().Key()))
		case reflect.Invalid:
			return reflect.Value{}, fmt.Errorf("nothing has no field %s", name)
		default:
			return reflect.Value{}, fmt.Errorf("%s has no field %s", value.Type(), name)
		}
	}
	return value, nil
}

// elements returns the keys and values of a slice, an array or a map with sorted keys.
func elements(of reflect.Value) (keys, values []reflect.Value, err error) {
	switch of.Kind() {
	case reflect.Invalid:
	case reflect.Slice, reflect.Array:
		for i := range of.Len() {
			keys, values = append(keys, reflect.ValueOf(i)), append(values, of.Index(i))
		}
	case reflect.Map:
		keys = of.MapKeys()
		if of.Type().Key().Kind() != reflect.String {
			return nil, nil, fmt.Errorf("the keys of %s have no order", of.Type())
		}
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			values = append(values, of.MapIndex(key))
		}
	default:
		return nil, nil, fmt.Errorf("%s has no elements", of.Type())
	}
	return keys, values, nil
}

// truth tells whether a value is not the zero value of its type, or an empty collection.
func truth(value reflect.Value) bool {
	if value = indirect(value); !value.IsValid() {
		return false
	}
	switch value.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array:
		return value.Len() > 0
	case reflect.Struct:
		return true
	default:
		return !value.IsZero()
	}
}

var errorType = reflect.TypeFor[error]()

// call calls a function of templates.
func call(function any, args []reflect.Value) (reflect.Value, error) {
	f := reflect.ValueOf(function)
	if f.Kind() != reflect.Func {
		return reflect.Value{}, errors.New("there is no such function")
	}
	of := f.Type()
	if fixed := of.NumIn(); len(args) != fixed && !of.IsVariadic() || of.IsVariadic() && len(args) < fixed-1 {
		return reflect.Value{}, fmt.Errorf("%d arguments, want %d", len(args), fixed)
	}
	for i, arg := range args {
		want := of.In(min(i, of.NumIn()-1))
		if of.IsVariadic() && i >= of.NumIn()-1 {
			want = want.Elem()
		}
		if !arg.IsValid() {
			args[i] = reflect.Zero(want)
			continue
		}
		if arg.Kind() == reflect.Interface && !arg.IsNil() {
			args[i] = arg.Elem()
		}
		if !args[i].Type().AssignableTo(want) {
			return reflect.Value{}, fmt.Errorf("argument %d is a %s, want %s", i+1, args[i].Type(), want)
		}
	}
	results := f.Call(args)
	if last := results[len(results)-1]; len(results) == 2 && of.Out(1) == errorType && !last.IsNil() {
		return reflect.Value{}, last.Interface().(error)
	}
	return results[0], nil
}
