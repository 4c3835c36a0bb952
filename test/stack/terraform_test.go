package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// module is a Terraform module under evaluation: HCL's own parser and expressions, and the part of Terraform that
// this module needs. Values are computed when an expression refers to them, as in Terraform's graph.
// https://developer.hashicorp.com/terraform/language
type module struct {
	t         testing.TB
	o         order
	blocks    map[string]*hclsyntax.Block // resources, data and variables by address
	locals    map[string]hclsyntax.Expression
	values    map[string]cty.Value // by address
	underWay  map[string]bool
	resources []string // addresses
}

func parseModule(t testing.TB, o order) *module {
	t.Helper()
	m := &module{t: t, o: o, blocks: map[string]*hclsyntax.Block{}, locals: map[string]hclsyntax.Expression{}, values: map[string]cty.Value{}, underWay: map[string]bool{}}
	files, err := filepath.Glob(moduleDir + "/*.tf")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has the files %v: %v", moduleDir, files, err)
	}
	parser := hclparse.NewParser()
	for _, name := range files {
		file, found := parser.ParseHCLFile(name)
		m.check(found)
		for _, block := range file.Body.(*hclsyntax.Body).Blocks {
			m.declare(block)
		}
	}
	return m
}

func (m *module) declare(block *hclsyntax.Block) {
	switch block.Type {
	case "terraform":
	case "locals":
		for name, attribute := range block.Body.Attributes {
			m.locals[name] = attribute.Expr
		}
	case "resource":
		address := strings.Join(block.Labels, ".")
		m.blocks[address] = block
		m.resources = append(m.resources, address)
	case "variable":
		m.blocks["var."+block.Labels[0]] = block
	case "data", "output":
		m.blocks[block.Type+"."+strings.Join(block.Labels, ".")] = block
	default:
		m.t.Fatalf("%v: this test does not support blocks of type %s", block.DefRange(), block.Type)
	}
}

func (m *module) check(found hcl.Diagnostics) {
	m.t.Helper()
	if found.HasErrors() {
		m.t.Fatal(found)
	}
}

// functions returns the Terraform functions that the module calls.
func (m *module) functions() map[string]function.Function {
	text := []function.Parameter{{Name: "text", Type: cty.String}}
	return map[string]function.Function{
		"can": tryfunc.CanFunc, "contains": stdlib.ContainsFunc, "coalesce": stdlib.CoalesceFunc, "jsondecode": stdlib.JSONDecodeFunc,
		"jsonencode": stdlib.JSONEncodeFunc, "regex": stdlib.RegexFunc, "substr": stdlib.SubstrFunc, "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"setsubtract": stdlib.SetSubtractFunc, "merge": stdlib.MergeFunc, "concat": stdlib.ConcatFunc,
		"length": function.New(&function.Spec{Type: function.StaticReturnType(cty.Number),
			Params: []function.Parameter{{Name: "of", Type: cty.DynamicPseudoType}},
			Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
				if arguments[0].Type() == cty.String {
					return stdlib.Strlen(arguments[0])
				}
				return stdlib.Length(arguments[0])
			}}),
		"sha256": function.New(&function.Spec{Params: text, Type: function.StaticReturnType(cty.String),
			Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
				sum := sha256.Sum256([]byte(arguments[0].AsString()))
				return cty.StringVal(hex.EncodeToString(sum[:])), nil
			}}),
		"templatefile": function.New(&function.Spec{Params: append(text, function.Parameter{Name: "variables", Type: cty.DynamicPseudoType}), Type: function.StaticReturnType(cty.String),
			Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
				return m.fill(arguments[0].AsString(), arguments[1].AsValueMap()), nil
			}}),
	}
}

// fill is the function templatefile.
func (m *module) fill(name string, variables map[string]cty.Value) cty.Value {
	m.t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		m.t.Fatal(err)
	}
	expression, found := hclsyntax.ParseTemplate(content, name, hcl.InitialPos)
	m.check(found)
	filled, found := expression.Value(&hcl.EvalContext{Variables: variables})
	m.check(found)
	return filled
}

// eval returns the value of an expression; own are local names, such as each.
func (m *module) eval(expression hcl.Expression, own map[string]cty.Value) cty.Value {
	m.t.Helper()
	roots := map[string]map[string]cty.Value{}
	data := map[string]map[string]cty.Value{}
	for _, traversal := range expression.Variables() {
		root := traversal.RootName()
		if _, is := own[root]; is {
			continue
		}
		name := traversal[1].(hcl.TraverseAttr).Name
		if root == "data" {
			below := traversal[2].(hcl.TraverseAttr).Name
			if data[name] == nil {
				data[name] = map[string]cty.Value{}
			}
			data[name][below] = m.value("data." + name + "." + below)
			continue
		}
		if roots[root] == nil {
			roots[root] = map[string]cty.Value{}
		}
		roots[root][name] = m.value(root + "." + name)
	}
	variables := map[string]cty.Value{}
	for root, below := range roots {
		variables[root] = cty.ObjectVal(below)
	}
	all := map[string]cty.Value{}
	for name, below := range data {
		all[name] = cty.ObjectVal(below)
	}
	variables["data"] = cty.ObjectVal(all)
	for name, value := range own {
		variables[name] = value
	}
	value, found := expression.Value(&hcl.EvalContext{Variables: variables, Functions: m.functions()})
	m.check(found)
	return value
}

// value returns the value at an address.
func (m *module) value(address string) cty.Value {
	m.t.Helper()
	if value, is := m.values[address]; is {
		return value
	}
	if m.underWay[address] {
		m.t.Fatalf("%s depends on itself", address)
	}
	m.underWay[address] = true
	defer delete(m.underWay, address)
	var value cty.Value
	kind, name, _ := strings.Cut(address, ".")
	switch {
	case address == "path.module":
		value = cty.StringVal(moduleDir)
	case kind == "local" && m.locals[name] != nil:
		value = m.eval(m.locals[name], nil)
	case m.blocks[address] == nil:
		m.t.Fatalf("the module has no %s", address)
	case kind == "data":
		value = m.found(name)
	case kind == "var":
		m.t.Fatalf("%s has no value", address)
	default:
		value = m.resource(address)
	}
	m.values[address] = value
	return value
}

// found returns the value of a data source.
func (m *module) found(name string) cty.Value {
	switch name {
	case "aws_caller_identity.current":
		return cty.ObjectVal(map[string]cty.Value{"account_id": cty.StringVal(accountID)})
	case "aws_region.current":
		return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(m.o.region)})
	case "aws_partition.current":
		return cty.ObjectVal(map[string]cty.Value{"partition": cty.StringVal(m.o.partition), "dns_suffix": cty.StringVal(m.o.suffix)})
	}
	m.t.Fatalf("this test does not support the data source %s", name)
	return cty.NilVal
}

// give sets the variables, or their defaults, and returns the errors of their validations.
func (m *module) give(given map[string]cty.Value) (refusals []string) {
	m.t.Helper()
	for name, value := range given {
		if m.blocks["var."+name] == nil {
			m.t.Fatalf("the module has no variable %s", name)
		}
		m.values["var."+name] = value
	}
	for address, block := range m.blocks {
		if !strings.HasPrefix(address, "var.") {
			continue
		}
		if _, is := m.values[address]; !is {
			m.values[address] = m.eval(block.Body.Attributes["default"].Expr, nil)
		}
	}
	for _, block := range m.blocks {
		for _, below := range block.Body.Blocks {
			if below.Type == "validation" && m.eval(below.Body.Attributes["condition"].Expr, nil).False() {
				refusals = append(refusals, m.eval(below.Body.Attributes["error_message"].Expr, nil).AsString())
			}
		}
	}
	return refusals
}
