package markup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"text/template/parse"
)

// HTML is a part of a page that needs no escaping.
type HTML string

// CSS is a style sheet that needs no escaping.
type CSS string

// Templates are parsed templates by their names. They are safe for concurrent use.
type Templates struct {
	trees map[string]*parse.Tree
	funcs map[string]any
}

// Parse reads the templates in the files that match the pattern. Funcs are functions with one result, or a result and an
// error, by their names in templates.
func Parse(files fs.FS, pattern string, funcs map[string]any) (*Templates, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	t := &Templates{trees: map[string]*parse.Tree{}, funcs: maps.Clone(builtins)}
	maps.Copy(t.funcs, funcs)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		trees, err := parse.Parse(name, string(text), "", "", t.funcs)
		if err != nil {
			return nil, err
		}
		maps.Copy(t.trees, trees)
	}
	return t, nil
}

// Execute writes the template of a name with data. After an error nothing is written.
func (t *Templates) Execute(out io.Writer, name string, data any) error {
	r := &run{templates: t}
	if err := r.template(name, reflect.ValueOf(data)); err != nil {
		return fmt.Errorf("template %s: %w", name, err)
	}
	if !r.page.between() {
		return fmt.Errorf("template %s: the page ends within a tag", name)
	}
	_, err := r.out.WriteTo(out)
	return err
}

// run is one execution.
type run struct {
	templates *Templates
	out       bytes.Buffer
	page      place
	depth     int
}

// scope has the value of the dot and the variables, the innermost last.
type scope struct {
	dot       reflect.Value
	variables []variable
}

type variable struct {
	name  string
	value reflect.Value
}

const deepest = 100 // templates that call each other

func (r *run) template(name string, data reflect.Value) error {
	tree := r.templates.trees[name]
	if tree == nil {
		return fmt.Errorf("there is no template %q", name)
	}
	if r.depth++; r.depth > deepest {
		return errors.New("templates call each other without end")
	}
	defer func() { r.depth-- }()
	s := &scope{dot: data, variables: []variable{{"$", data}}}
	return r.list(s, tree.Root)
}

func (r *run) list(s *scope, list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := r.node(s, node); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) node(s *scope, node parse.Node) error {
	switch node := node.(type) {
	case *parse.TextNode:
		r.page.static(string(node.Text))
		r.out.Write(node.Text)
		return nil
	case *parse.ActionNode:
		value, err := s.pipe(r.templates.funcs, node.Pipe)
		if err != nil || len(node.Pipe.Decl) > 0 {
			return err
		}
		text, err := r.page.escape(value)
		if err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		r.out.WriteString(text)
		return nil
	case *parse.IfNode:
		return r.branch(s, &node.BranchNode, false)
	case *parse.WithNode:
		return r.branch(s, &node.BranchNode, true)
	case *parse.RangeNode:
		return r.each(s, node)
	case *parse.TemplateNode:
		data, err := s.pipe(r.templates.funcs, node.Pipe)
		if err != nil {
			return err
		}
		return r.template(node.Name, data)
	case *parse.CommentNode:
		return nil
	}
	return fmt.Errorf("%s: such an action is not known", node)
}

// branch executes if and, where the dot becomes the value, with.
func (r *run) branch(s *scope, b *parse.BranchNode, with bool) error {
	defer s.leave(s.dot, len(s.variables))
	value, err := s.pipe(r.templates.funcs, b.Pipe)
	if err != nil {
		return err
	}
	if !truth(value) {
		return r.list(s, b.ElseList)
	}
	if with {
		s.dot = value
	}
	return r.list(s, b.List)
}

// leave is the end of a scope.
func (s *scope) leave(dot reflect.Value, variables int) {
	s.dot, s.variables = dot, s.variables[:variables]
}

// each executes range over a slice or a map, whose keys are sorted.
func (r *run) each(s *scope, node *parse.RangeNode) error {
	defer s.leave(s.dot, len(s.variables))
	value, err := s.evaluate(r.templates.funcs, node.Pipe)
	if err != nil {
		return err
	}
	keys, values, err := elements(indirect(value))
	if err != nil {
		return fmt.Errorf("%s: %w", node.Pipe, err)
	}
	if len(values) == 0 {
		return r.list(s, node.ElseList)
	}
	outside := len(s.variables)
	for i := range values {
		s.dot, s.variables = values[i], s.variables[:outside]
		switch declared := node.Pipe.Decl; len(declared) {
		case 1:
			s.variables = append(s.variables, variable{declared[0].Ident[0], values[i]})
		case 2:
			s.variables = append(s.variables, variable{declared[0].Ident[0], keys[i]}, variable{declared[1].Ident[0], values[i]})
		}
		if err := r.list(s, node.List); err != nil {
			return err
		}
	}
	return nil
}
