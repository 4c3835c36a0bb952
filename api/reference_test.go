package api_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var update = flag.Bool("update", false, "write docs/reference/annotations.md again")

const page = "../docs/reference/annotations.md"

const head = `# Annotations, labels, taints and finalizers

Generated from the constants of the API types and of the providers (` + "`make reference`" + `; a test compares). Karpenter's own
meaning of its keys is unchanged; what begins with ` + "`karpenter-go.github.io/`" + ` is ours.
`

// sections lists the sections of the page: a title, and the name prefix of the constants in it.
var sections = []struct{ title, prefix string }{
	{"Annotations", "Annotation"}, {"Labels", "Label"}, {"Taints", "TaintKey"}, {"Finalizers", "Finalizer"},
}

// key is one constant with its value and its description.
type key struct{ name, value, says string }

func TestReferenceOfAnnotations(t *testing.T) {
	keys := keysOf(t, "./karpenter/v1", "../internal/legacy/v1beta1", "./aws/v1", "./kwok/v1alpha1",
		"../cloud/kwok", "../internal/cloud/aws/launch")
	var b strings.Builder
	b.WriteString(head)
	for _, section := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n| key | |\n|---|---|\n", section.title)
		for _, k := range keys {
			if strings.HasPrefix(k.name, section.prefix) {
				fmt.Fprintf(&b, "| `%s` | %s |\n", k.value, k.says)
			}
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s does not match the code (run make reference), -code +page:\n%s", page, diff)
	}
}

// keysOf returns the exported constants that are keys, ordered by value.
func keysOf(t *testing.T, folders ...string) []key {
	t.Helper()
	r := reader{files: token.NewFileSet(), values: map[string]string{"corev1.PodDeletionCost": corev1.PodDeletionCost,
		"corev1.LabelNodeExcludeBalancers": corev1.LabelNodeExcludeBalancers}}
	says := map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var groups []*ast.GenDecl
		r.local = folder
		for _, name := range files {
			file, err := parser.ParseFile(r.files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				if group, ok := declaration.(*ast.GenDecl); ok && group.Tok == token.CONST && !strings.HasSuffix(name, "_test.go") {
					groups = append(groups, group)
				}
			}
		}
		for range 3 { // a constant may refer to a later one
			for _, group := range groups {
				r.read(group, says)
			}
		}
	}
	var keys []key
	for at, comment := range says {
		_, name, _ := strings.Cut(at, " ")
		r.values[name] = r.values[at] // if two packages have the name, the value of its own package
		keys = append(keys, key{name, r.values[at], without(r.values[at], spelled(comment, strings.TrimSuffix(at, name), r.values))})
	}
	if len(keys) < 40 {
		t.Fatalf("%d keys", len(keys))
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(strings.Compare(a.value, b.value), strings.Compare(a.name, b.name), strings.Compare(a.says, b.says))
	})
	// A comment that several constants share is listed once per section.
	return slices.CompactFunc(keys, func(a, b key) bool { return a.value == b.value && sectionOf(a.name) == sectionOf(b.name) })
}

// sectionOf returns the index of the constant's section, or -1 if it has none.
func sectionOf(name string) int {
	return slices.IndexFunc(sections, func(s struct{ title, prefix string }) bool { return strings.HasPrefix(name, s.prefix) })
}

// reader holds the values of constants: by name, by directory and name for those of one package, and by
// qualified name for those of Kubernetes and karpv1.
type reader struct {
	files  *token.FileSet
	values map[string]string
	local  string
}

// read evaluates a group of constants. A constant without a comment shares the comment of the constant on the
// previous line.
func (r *reader) read(group *ast.GenDecl, says map[string]string) {
	comment, line := group.Doc.Text(), 0
	for _, spec := range group.Specs {
		constant := spec.(*ast.ValueSpec)
		if before := line; before > 0 && r.files.Position(constant.Pos()).Line > before+1 {
			comment = ""
		}
		line = r.files.Position(constant.End()).Line
		comment = cmp.Or(constant.Doc.Text(), comment)
		if len(constant.Values) != 1 {
			continue
		}
		name := constant.Names[0].Name
		value, known := r.valueOf(constant.Values[0])
		if !known {
			continue
		}
		r.values[r.local+" "+name] = value
		if strings.HasSuffix(r.local, "karpenter/v1") {
			r.values["karpv1."+name] = value
		}
		if sectionOf(name) >= 0 && ast.IsExported(name) && strings.Contains(value, "/") {
			r.values[name], says[r.local+" "+name] = value, cmp.Or(constant.Comment.Text(), comment)
		}
	}
}

func (r *reader) valueOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		value, known := r.values[r.local+" "+e.Name]
		return value, known
	case *ast.SelectorExpr:
		value, known := r.values[fmt.Sprintf("%s.%s", e.X, e.Sel)]
		return value, known
	case *ast.BinaryExpr:
		a, knownA := r.valueOf(e.X)
		b, knownB := r.valueOf(e.Y)
		return a + b, knownA && knownB && e.Op == token.ADD
	}
	return "", false
}

// identifier matches what may be a constant's name in a comment.
var identifier = regexp.MustCompile(`\b[A-Z][a-z]\w*[A-Z]\w*\b`)

// without returns a comment without its leading key.
func without(value, comment string) string {
	rest, found := strings.CutPrefix(comment, "`"+value+"`")
	if rest = strings.TrimLeft(rest, ", "); !found || rest == "" || strings.HasPrefix(rest, "and ") {
		return comment
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// spelled returns a comment as one line, with the names of constants replaced by their values. Constants that are no
// keys are those of the comment's own package, whose prefix in values is given.
func spelled(comment, own string, values map[string]string) string {
	return identifier.ReplaceAllStringFunc(strings.Join(strings.Fields(comment), " "), func(name string) string {
		if value := cmp.Or(values[name], values[own+name]); value != "" {
			return "`" + value + "`"
		}
		return name
	})
}

// TestSpelled verifies that no name of a constant is left in a comment, whether it is a key or a value of one.
func TestSpelled(t *testing.T) {
	values := map[string]string{"LabelColor": "example.org/color", "./a ColorRed": "red", "./b ColorRed": "rouge"}
	const comment = "LabelColor of a NodePool is\nColorRed or ColorBlue"
	if got, want := spelled(comment, "./a ", values), "`example.org/color` of a NodePool is `red` or ColorBlue"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
