package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A subject is something that exists as often as packages have it. Its rules find it by what the code must do, so that a
// new copy is found on the day it comes, whatever its name.
type subject struct {
	name string
	// within are the folders in question; none stands for all.
	within []string
	// A package is a copy if each rule holds for one of its declarations.
	rules []func(goFile, ast.Decl) bool
}

type rules []func(goFile, ast.Decl) bool

// subjects are looked for in all Go files but tests.
var subjects = []subject{
	{"converters of API objects to the model", nil, rules{convertsObjects}},
	{"planners of virtual pods", nil, rules{callsOf("ScheduleVirtual")}},
	{"ledgers of limits and quotas", nil, rules{comparesLimits}},
	{"ways to wait longer", []string{"internal/engine", "internal/controller", "internal/cluster", "internal/execute"}, rules{waitsLonger}},
	{"virtual clusters", []string{"internal/testing", "test", "sandbox"}, rules{callsOf("model.NewBuilder", "cluster.NewStore",
		"state.New"), movesClock}},
	{"rules of kube-scheduler", []string{"internal/engine/placement", "internal/testing", "test"}, rules{schedules}},
}

// copies returns the first place of a subject in each package that has it.
func (r *repository) copies(s subject) []string {
	places := map[string][]string{}
	for _, f := range r.sources() {
		if len(s.within) > 0 && !slices.ContainsFunc(s.within, func(folder string) bool { return strings.HasPrefix(f.name, folder+"/") }) {
			continue
		}
		if places[f.folder()] == nil {
			places[f.folder()] = make([]string, len(s.rules))
		}
		for _, d := range f.tree.Decls {
			for i, holds := range s.rules {
				if places[f.folder()][i] == "" && holds(f, d) {
					places[f.folder()][i] = r.place(f, d)
				}
			}
		}
	}
	var list []string
	for _, of := range places {
		if !slices.Contains(of, "") {
			list = append(list, of[0])
		}
	}
	slices.Sort(list)
	return list
}

// sources are the files in which copies are looked for.
func (r *repository) sources() []goFile {
	return slices.DeleteFunc(slices.Clone(r.files), func(f goFile) bool { return f.test || strings.HasPrefix(f.name, "tools/") })
}

func (r *repository) place(f goFile, n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, r.fset.Position(n.Pos()).Line)
}

func callsOf(names ...string) func(goFile, ast.Decl) bool {
	return func(_ goFile, d ast.Decl) bool {
		return slices.ContainsFunc(names, func(name string) bool { return calls(d, name) })
	}
}

// convertsObjects: package cluster/convert is shared, so a converter is what fills a builder with its results, or makes
// specs of objects by itself.
func convertsObjects(f goFile, d ast.Decl) bool {
	if f.folder() == "internal/cluster/convert" {
		return false
	}
	if calls(d, "model.NewBuilder") && imports(f, module+"/internal/cluster/convert") {
		return true
	}
	return (imports(f, "k8s.io/api/core/v1") || imports(f, module+"/api/karpenter/v1")) &&
		contains(d, func(n ast.Node) bool {
			l, ok := n.(*ast.CompositeLit)
			return ok && len(l.Elts) > 2 && slices.Contains([]string{"model.PodSpec", "model.NodeSpec", "model.PoolSpec"}, dotted(l.Type))
		})
}

// comparesLimits finds what is used beside what a limit allows.
func comparesLimits(f goFile, d ast.Decl) bool {
	return contains(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.SUB}, n.Op) &&
				(selects(n.X, "NodeLimit") || selects(n.Y, "NodeLimit") || selects(n.X, "Limit") && selects(n.Y, "Used"))
		case *ast.CallExpr: // a constructor or a check that takes the limits
			return slices.ContainsFunc(n.Args, func(e ast.Expr) bool {
				s, ok := e.(*ast.SelectorExpr)
				return ok && (s.Sel.Name == "NodeLimit" || s.Sel.Name == "Limits") && len(n.Args) > 2 && !formats(n)
			})
		}
		return false
	})
}

var waiting = regexp.MustCompile(`(?i)wait|pause|delay|backoff|retry|again|most$|first$`)

// waitsLonger finds a wait that is doubled, and types that hold a time and count failures.
func waitsLonger(_ goFile, d ast.Decl) bool {
	return contains(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			return (n.Tok == token.MUL_ASSIGN || n.Tok == token.SHL_ASSIGN) && waiting.MatchString(dotted(n.Lhs[0]))
		case *ast.BinaryExpr:
			return (n.Op == token.SHL || n.Op == token.MUL && (isTwo(n.X) || isTwo(n.Y))) &&
				(waiting.MatchString(dotted(n.X)) || waiting.MatchString(dotted(n.Y)))
		case *ast.TypeSpec:
			s, ok := n.Type.(*ast.StructType)
			return ok && remembersFailures(s)
		}
		return false
	})
}

var failing = regexp.MustCompile(`(?i)fail|futile|undone|outcome|removed|disput`)

// remembersFailures reports whether a type counts failures and has a time, or lists their outcomes. What it keeps beside
// pauses of package pause is no wait of its own.
func remembersFailures(s *ast.StructType) bool {
	timed, counted, listed := false, false, false
	for _, field := range s.Fields.List {
		timed = timed || contains(field.Type, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			return ok && (dotted(e) == "time.Time" || dotted(e) == "metav1.Time")
		})
		failed := slices.ContainsFunc(field.Names, func(name *ast.Ident) bool { return failing.MatchString(name.Name) })
		list, ok := field.Type.(*ast.ArrayType)
		listed = listed || failed && ok && dotted(list.Elt) == "bool"
		counted = counted || failed && contains(field.Type, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			return ok && (strings.HasPrefix(dotted(e), "int") || dotted(e) == "time.Time")
		})
	}
	return timed && counted || listed
}

// movesClock finds the clock of a world of its own.
func movesClock(_ goFile, d ast.Decl) bool {
	return calls(d, "clocktesting.NewFakeClock") || contains(d, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		return ok && a.Tok == token.ASSIGN && strings.HasSuffix(strings.ToLower("."+dotted(a.Lhs[0])), ".now")
	})
}

// schedules finds what compares taints with tolerations, or binds pods to nodes by itself.
func schedules(_ goFile, d ast.Decl) bool {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Body == nil {
		return false
	}
	compares := selects(fn.Body, "Taints", "taints") && selects(fn.Body, "Tolerations", "tolerations")
	return compares && !calls(d, "append") || contains(d, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Tok != token.ASSIGN {
			return false
		}
		to, value := dotted(a.Lhs[0]), dotted(a.Rhs[0])
		node := strings.HasSuffix(to, ".Node") || strings.HasSuffix(to, ".node")
		return node && value != "" && strings.HasSuffix(strings.ToLower(value), "name")
	})
}

// addCopies adds the number of copies of each subject, with their places.
func (r *repository) addCopies(add func(name string, value any, detail string)) {
	count := func(name string, places []string) { add("copies: "+name, len(places), strings.Join(places, ", ")) }
	for _, s := range subjects {
		count(s.name, r.copies(s))
	}
	count("painters of the fleet", r.painters())
	for _, word := range []string{"room", "brake"} {
		count(fmt.Sprintf("packages that mean something by %q", word), r.meanings(word))
	}
}

// painters are the files that draw boxes with their outlines.
func (r *repository) painters() []string {
	var files []string
	for name, text := range r.texts {
		if !strings.Contains(name, "/web/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if t := strings.ToLower(text); strings.Contains(t, "outline") && strings.Contains(t, "rect(") {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// meanings returns the packages that declare a type, a function, a method or a field with a word in its name.
func (r *repository) meanings(word string) []string {
	of := regexp.MustCompile(`^` + word + `s?(\p{Lu}.*)?$|\p{Ll}` + strings.ToUpper(word[:1]) + word[1:] + `s?(\p{Lu}.*)?$`)
	first := map[string]string{}
	note := func(f goFile, id *ast.Ident) {
		if name := strings.ToLower(id.Name[:1]) + id.Name[1:]; first[f.folder()] == "" && of.MatchString(name) {
			first[f.folder()] = r.place(f, id)
		}
	}
	for _, f := range r.sources() {
		note(f, f.tree.Name)
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				note(f, n.Name)
			case *ast.TypeSpec:
				note(f, n.Name)
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, name := range field.Names {
							note(f, name)
						}
					}
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Values(first))
}

func contains(in ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// calls reports whether a function is called that name ends with: "F", or "package.F" for a call of another package.
func calls(d ast.Decl, name string) bool {
	return contains(d, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		called := ""
		if ok {
			called = dotted(c.Fun)
		}
		return called == name || strings.HasSuffix(called, "."+name)
	})
}

func selects(in ast.Node, names ...string) bool {
	return contains(in, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		return ok && slices.Contains(names, s.Sel.Name)
	})
}

// dotted returns a.b.c for that expression, and "" for others.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

// formats reports whether the first argument is text.
func formats(c *ast.CallExpr) bool {
	l, ok := c.Args[0].(*ast.BasicLit)
	return ok && strings.Contains(l.Value, "%")
}

func isTwo(e ast.Expr) bool { l, ok := e.(*ast.BasicLit); return ok && l.Value == "2" }

func imports(f goFile, path string) bool {
	return slices.ContainsFunc(f.tree.Imports, func(i *ast.ImportSpec) bool {
		name, err := strconv.Unquote(i.Path.Value)
		return err == nil && name == path
	})
}
