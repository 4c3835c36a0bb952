package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// TestEveryCodeHasAClass verifies that each code is named in a case of Class.
func TestEveryCodeHasAClass(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "verdict.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	classed := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			first, isConst := d.Specs[0].(*ast.ValueSpec)
			if !isConst || first.Names[0].Name != "OK" {
				continue
			}
			for _, spec := range d.Specs {
				codes = append(codes, spec.(*ast.ValueSpec).Names[0].Name)
			}
		case *ast.FuncDecl:
			if d.Name.Name != "Class" {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if c, ok := n.(*ast.CaseClause); ok {
					for _, of := range c.List {
						classed[of.(*ast.Ident).Name] = true
					}
				}
				return true
			})
		}
	}
	if len(codes) < 50 {
		t.Fatalf("%d codes were found: %v", len(codes), codes)
	}
	for _, code := range codes {
		if !classed[code] {
			t.Errorf("%s is in no case of Class", code)
		}
	}
}
