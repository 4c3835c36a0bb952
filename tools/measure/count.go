package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// measures returns the numbers that the sources give.
func (r *repository) measures() []measure {
	var all []measure
	add := func(name string, value any, detail string) {
		all = append(all, measure{Name: name, Value: fmt.Sprint(value), Detail: detail})
	}
	for _, of := range []string{"product", "legacy", "proof"} {
		name, methods, files := r.largestType(of)
		add(of+": lines of Go without tests", r.size(false, of), "")
		add(of+": methods and files of the largest type", fmt.Sprintf("%d, %d", methods, files), name)
	}
	r.addRooms(add)
	add("lines of Go without tests", r.size(false, ""), "")
	add("lines of tests", r.size(true, ""), "")
	large := r.largeTypes(60)
	add("types with more than 60 methods", len(large), strings.Join(large, ", "))
	full := r.fullFolders(40)
	add("folders with more than 40 files", len(full), strings.Join(full, ", "))
	long, worst := r.functions(false, 60)
	add("functions over 60 lines", long, worst)
	long, worst = r.functions(true, 80)
	add("test functions over 80 lines", long, worst)
	wide, worst := r.parameters()
	add("functions over 5 parameters", wide, worst)
	add("lines of Go over 140 columns", r.columns(140), "")
	embedded, worst := r.embeddings("internal/engine")
	add("structs of the engine that embed another of their package", embedded, worst)
	once, unexported, worst := r.usedOnce()
	add("unexported functions used once, from another file", fmt.Sprintf("%.1f %%", 100*float64(once)/float64(unexported)), worst)
	repeated, worst := r.repeatedTypes(5)
	add("names of types that 5 or more packages declare", repeated, worst)
	joined, worst := r.joinedConditions()
	add("tests: `if` with three or more conditions and one error", joined, worst)
	add("fuzz targets, files of their corpora", fmt.Sprintf("%d, %d", r.prefixed("Fuzz"), r.corpora()), "")
	add("examples that run as tests", r.prefixed("Example"), "")
	r.addCopies(add)
	r.addConcepts(add)
	return all
}

// size returns the lines of the tests, or of the other files, of a part; "" stands for all parts.
func (r *repository) size(test bool, of string) int {
	sum := 0
	for _, f := range r.files {
		if f.test == test && (of == "" || part(f.name) == of) {
			sum += strings.Count(f.text, "\n")
		}
	}
	return sum
}

func (r *repository) each(test bool, visit func(goFile, *ast.FuncDecl)) {
	for _, f := range r.files {
		if f.test != test {
			continue
		}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				visit(f, fn)
			}
		}
	}
}

// functions counts functions of more than limit lines, and names the longest.
func (r *repository) functions(test bool, limit int) (count int, worst string) {
	most := limit
	r.each(test, func(f goFile, fn *ast.FuncDecl) {
		n := r.lines(fn)
		if n > limit {
			count++
		}
		if n > most {
			most, worst = n, fmt.Sprintf("%s in %s, %d", fn.Name.Name, f.name, n)
		}
	})
	return count, worst
}

func (r *repository) parameters() (count int, worst string) {
	r.each(false, func(f goFile, fn *ast.FuncDecl) {
		if n := fn.Type.Params.NumFields(); n > 5 {
			count++
			worst = fmt.Sprintf("%s in %s, %d", fn.Name.Name, f.name, n)
		}
	})
	return count, worst
}

func (r *repository) columns(limit int) int {
	count := 0
	for _, f := range r.files {
		for line := range strings.Lines(f.text) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > limit {
				count++
			}
		}
	}
	return count
}

// receiver returns the name of the type that fn is a method of, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	return typeName(fn.Recv.List[0].Type)
}

// typeName returns the name in T, *T and T[P], and "" for types of other packages and others without a name.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// methods returns the names of files with the methods of each type outside of tests, once for each method.
func (r *repository) methods(of string) map[string][]string {
	in := map[string][]string{}
	r.each(false, func(f goFile, fn *ast.FuncDecl) {
		if t := receiver(fn); t != "" && (of == "" || part(f.name) == of) {
			in[f.folder()+"."+t] = append(in[f.folder()+"."+t], f.name)
		}
	})
	return in
}

// largestType returns the type of a part with the most methods outside of tests, and the number of files they are in.
func (r *repository) largestType(of string) (name string, methods, files int) {
	all := r.methods(of)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if len(all[id]) > methods {
			slices.Sort(all[id])
			name, methods, files = id, len(all[id]), len(slices.Compact(slices.Clone(all[id])))
		}
	}
	return name, methods, files
}

// largeTypes returns the types with more methods than a limit.
func (r *repository) largeTypes(limit int) []string {
	var large []string
	for id, methods := range r.methods("") {
		if len(methods) > limit {
			large = append(large, fmt.Sprintf("%s %d", id, len(methods)))
		}
	}
	slices.Sort(large)
	return large
}

// fullFolders returns the folders with more Go files than a limit, tests included.
func (r *repository) fullFolders(limit int) []string {
	files := map[string]int{}
	for _, f := range r.files {
		files[f.folder()]++
	}
	var full []string
	for folder, n := range files {
		if n > limit {
			full = append(full, fmt.Sprintf("%s %d", folder, n))
		}
	}
	slices.Sort(full)
	return full
}

// structs calls visit with the struct types outside of tests.
func (r *repository) structs(visit func(goFile, *ast.TypeSpec, *ast.StructType)) {
	for _, f := range r.files {
		if f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				named := spec.(*ast.TypeSpec)
				if s, ok := named.Type.(*ast.StructType); ok {
					visit(f, named, s)
				}
			}
		}
	}
}

// embeddings counts structs below a folder that embed a struct of their own package.
func (r *repository) embeddings(below string) (count int, worst string) {
	declared := map[string]bool{}
	r.structs(func(f goFile, named *ast.TypeSpec, _ *ast.StructType) {
		declared[f.folder()+"."+named.Name.Name] = true
	})
	r.structs(func(f goFile, named *ast.TypeSpec, s *ast.StructType) {
		if !strings.HasPrefix(f.name, below) {
			return
		}
		for _, field := range s.Fields.List {
			if len(field.Names) == 0 && declared[f.folder()+"."+typeName(field.Type)] {
				count++
				worst = f.folder() + "." + named.Name.Name
				return
			}
		}
	})
	return count, worst
}

// usedOnce counts unexported functions and methods whose name occurs exactly once more in their package, in another
// file. It goes by names: two methods of one name are not told apart, and such are left out.
func (r *repository) usedOnce() (once, all int, worst string) {
	type place struct{ folder, name string }
	declared, uses := map[place][]string{}, map[place][]string{}
	for _, f := range r.files {
		if f.test {
			continue
		}
		names := map[*ast.Ident]bool{}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && !fn.Name.IsExported() && fn.Name.Name != "main" && fn.Name.Name != "init" {
				names[fn.Name] = true
				at := place{f.folder(), fn.Name.Name}
				declared[at] = append(declared[at], f.name)
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !names[id] {
				at := place{f.folder(), id.Name}
				uses[at] = append(uses[at], f.name)
			}
			return true
		})
	}
	perFolder := map[string]int{}
	for at, files := range declared {
		if len(files) != 1 {
			continue
		}
		all++
		if u := uses[at]; len(u) == 1 && u[0] != files[0] {
			once++
			perFolder[at.folder]++
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(perFolder)) {
		if worst == "" || perFolder[folder] > perFolder[worst] {
			worst = folder
		}
	}
	return once, max(all, 1), worst
}

// repeatedTypes counts names of unexported types that at least limit packages declare.
func (r *repository) repeatedTypes(limit int) (count int, worst string) {
	packages := map[string]map[string]bool{}
	for _, f := range r.files {
		if f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				if name := spec.(*ast.TypeSpec).Name.Name; !token.IsExported(name) {
					if packages[name] == nil {
						packages[name] = map[string]bool{}
					}
					packages[name][f.folder()] = true
				}
			}
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if n := len(packages[name]); n >= limit {
			count++
			names = append(names, fmt.Sprintf("%s %d", name, n))
		}
	}
	return count, strings.Join(names, ", ")
}

// joinedConditions counts if statements of tests with three or more conditions, joined by || or &&, whose body is one
// call of Errorf or Fatalf: the message cannot say which of the conditions failed.
func (r *repository) joinedConditions() (count int, worst string) {
	in := map[string]int{}
	for _, f := range r.files {
		if !f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.IfStmt); ok && conditions(s.Cond) >= 3 && len(s.Body.List) == 1 && reports(s.Body.List[0]) {
				count++
				in[f.folder()]++
			}
			return true
		})
	}
	folders := slices.SortedFunc(maps.Keys(in), func(a, b string) int { return cmp.Or(in[b]-in[a], cmp.Compare(a, b)) })
	if len(folders) > 0 {
		worst = fmt.Sprintf("%s, %d", folders[0], in[folders[0]])
	}
	return count, worst
}

// conditions counts the operands of || and &&.
func conditions(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return conditions(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LOR || e.Op == token.LAND {
			return conditions(e.X) + conditions(e.Y)
		}
	}
	return 1
}

func reports(s ast.Stmt) bool {
	expression, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, selector.Sel.Name)
}

// prefixed counts the functions of tests with a prefix that the go command runs.
func (r *repository) prefixed(prefix string) int {
	count := 0
	r.each(true, func(_ goFile, fn *ast.FuncDecl) {
		if fn.Recv == nil && strings.HasPrefix(fn.Name.Name, prefix) {
			count++
		}
	})
	return count
}

func (r *repository) corpora() int {
	count := 0
	for _, name := range r.names {
		if strings.Contains(name, "/testdata/fuzz/") {
			count++
		}
	}
	return count
}
