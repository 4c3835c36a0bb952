package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is a text with documents, YAML or JSON.
type File struct {
	Name string // name in the report
	Text []byte
	Live bool // was read from a cluster: fields of the API server are omitted, see also Options.Workloads
}

// document is one document of a file during its migration.
type document struct {
	origin string     // file and number, for the report
	text   string     // as it was written, without separators, and with line feeds only
	ends   []bool     // for each line, whether it ended with CR LF; nil: none did
	live   bool       // was read from a cluster
	root   *yaml.Node // its value; nil when it is empty or must not be parsed
	edits  []edit     // small changes in the text; the same changes are made in root
	anew   bool       // is encoded again from root
	bared  bool       // is encoded again only to omit fields that an API server adds and manifests do not have
	gone   bool       // was replaced by other documents, or removed
	after  []*document

	proposed bool // was created from a node group
	patch    bool // is a patch of Kustomize, and contains only what it changes
}

// edit replaces a part of a line, or inserts lines before it.
type edit struct {
	line, column int    // starting at 1
	old          string // the replaced text; empty: the new text is inserted before the line
	new          string
}

var separator = regexp.MustCompile(`^---(\s|$)`)

// split returns the documents of a file. Text after a separator belongs to the next document. Each part may be YAML,
// or consecutive JSON objects. The text after those is a separate document.
func split(file File) []*document {
	var documents []*document
	for _, part := range parts(strings.TrimPrefix(string(file.Text), "\ufeff")) {
		objects, rest := splitJSON(part)
		for _, text := range append(objects, rest) {
			if strings.TrimSpace(text) != "" {
				d := newDocument(text)
				d.origin, d.live = fmt.Sprintf("%s: document %d", file.Name, len(documents)+1), file.Live
				documents = append(documents, d)
			}
		}
	}
	return documents
}

// newDocument removes empty lines at the start and end of a text, and records its carriage returns.
func newDocument(raw string) *document {
	end := "\n"
	if i := strings.IndexByte(raw, '\n'); i > 0 && raw[i-1] == '\r' {
		end = "\r\n"
	}
	raw = strings.Trim(raw, "\r\n") + end
	d := &document{text: strings.ReplaceAll(raw, "\r\n", "\n")}
	if len(d.text) < len(raw) {
		for line := range strings.Lines(raw) {
			d.ends = append(d.ends, strings.HasSuffix(line, "\r\n"))
		}
	}
	return d
}

// withEnds returns the lines as one text with their line ends. A new line, which is in one string with the line after
// it, gets the line end of that line.
func (d *document) withEnds(lines []string) string {
	for i := range d.ends {
		if i < len(lines) && d.ends[i] {
			lines[i] = strings.ReplaceAll(lines[i], "\n", "\r\n")
		}
	}
	return strings.Join(lines, "")
}

// ended returns a text that was encoded again with the line end of the document's first line on all lines.
func (d *document) ended(text string) string {
	if len(d.ends) == 0 || !d.ends[0] {
		return text
	}
	return strings.ReplaceAll(text, "\n", "\r\n")
}

// parts returns the texts between the lines that separate documents: --- and, at the end of one, three dots.
func parts(text string) []string {
	var parts []string
	var part strings.Builder
	for line := range strings.Lines(text) {
		ends := line[0] == '.' && strings.TrimSpace(line) == "..."
		if ends || separator.MatchString(line) {
			parts = append(parts, part.String())
			part.Reset()
			line = strings.TrimLeft(line[3:], " \t")
		}
		if !ends && (part.Len() > 0 || strings.TrimSpace(line) != "") {
			part.WriteString(line)
		}
	}
	return append(parts, part.String())
}

// splitJSON splits the JSON objects at the start of a text from the rest. The reader indents them again, because YAML
// does not allow tabs. Braces that are not JSON, such as flow YAML or a template, belong to the rest.
func splitJSON(text string) (objects []string, rest string) {
	for {
		if rest = strings.TrimLeft(text, " \t\r\n"); !strings.HasPrefix(rest, "{") {
			return objects, text
		}
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return objects, rest
		}
		objects, text = append(objects, string(value)), rest[decoder.InputOffset():]
	}
}

// parse parses the text. A document of comments only has no root.
func (d *document) parse() error {
	text := []byte(d.text)
	flow := d.text[0] == '{'
	if flow && json.Valid(text) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", " "); err == nil {
			text = indented.Bytes()
		}
	}
	var node yaml.Node
	var more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&node)
	if err == nil && !errors.Is(decoder.Decode(&more), io.EOF) {
		err = errors.New("contains two documents without a separator; add a line with ---")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	if len(node.Content) == 0 {
		return nil
	}
	d.root = node.Content[0]
	if d.root.Kind != yaml.MappingNode {
		return nil
	}
	if flow {
		block(d.root) // positions are those of the indented text; changed documents are encoded again
	}
	if len(d.root.Content) > 0 { // the first comment is about the whole document, not about the first field
		first := d.root.Content[0]
		d.root.HeadComment = joinComments(node.HeadComment, d.root.HeadComment, first.HeadComment)
		first.HeadComment = ""
	}
	if node.FootComment != "" {
		d.root.FootComment = joinComments(d.root.FootComment, node.FootComment)
	}
	if err := (&expansion{left: mostAliases}).expand(d.root, 0); err != nil {
		return err
	}
	return simple(d.root)
}

// simple rejects field names that are not strings, and duplicate fields. Two opening braces of a template are parsed
// as such a name.
func simple(node *yaml.Node) error {
	seen := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode {
			if seen[child.Value] {
				return fmt.Errorf("line %d: duplicate field %s", child.Line, child.Value)
			}
			seen[child.Value] = true
		}
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: the name of a field is not a string", child.Line)
		}
		if err := simple(child); err != nil {
			return err
		}
	}
	return nil
}

// mostAliases is the maximum number of values to which the aliases of one document may expand: a few lines can expand
// to billions.
const mostAliases = 100_000

// expansion replaces aliases and merge keys by their values.
type expansion struct{ left int }

func (e *expansion) expand(node *yaml.Node, depth int) error {
	if depth > 200 {
		return errors.New("nested deeper than 200 levels")
	}
	if node.Kind == yaml.MappingNode {
		merge(node)
	}
	for i, child := range node.Content {
		if child.Kind == yaml.AliasNode {
			e.left -= count(child.Alias)
			if e.left < 0 {
				return fmt.Errorf("aliases expand to more than %d values", mostAliases)
			}
			child = clone(child.Alias)
			child.Anchor = ""
			node.Content[i] = child
		}
		if err := e.expand(child, depth+1); err != nil {
			return err
		}
	}
	node.Anchor = ""
	return nil
}

// count returns the number of values.
func count(node *yaml.Node) int {
	n := 1
	for _, child := range node.Content {
		n += count(child)
	}
	return n
}

// merge adds the fields of "<<" that are not present.
func merge(node *yaml.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag != "!!merge" || len(node.Content) > mostAliases {
			continue
		}
		sources := []*yaml.Node{node.Content[i+1]}
		if sources[0].Kind == yaml.SequenceNode {
			sources = sources[0].Content
		}
		node.Content = slices.Delete(node.Content, i, i+2)
		for _, source := range sources {
			if source.Kind == yaml.AliasNode {
				source = source.Alias
			}
			for j := 0; j+1 < len(source.Content); j += 2 {
				if at(node, source.Content[j].Value) == nil {
					node.Content = append(node.Content, clone(source.Content[j]), clone(source.Content[j+1]))
				}
			}
		}
		i -= 2
	}
}

// changed reports whether the output differs from the input.
func (d *document) changed() bool { return d.anew || d.gone || len(d.edits) > 0 }

// written returns the document in its printed form, with a line feed at the end.
func (d *document) written() string {
	switch {
	case d.gone:
		return ""
	case d.root == nil || !d.anew && !d.bared && len(d.edits) == 0:
		return d.withEnds(strings.SplitAfter(d.text, "\n"))
	case !d.anew && !d.bared:
		if text, ok := d.edited(); ok {
			return text
		}
	}
	return d.ended(encode(d.root, indentsLists(d.text)))
}

// edited returns the text with the edits. ok is false when its content then differs from root.
func (d *document) edited() (string, bool) {
	lines := strings.SplitAfter(d.text, "\n")
	edits := slices.Clone(d.edits)
	slices.SortStableFunc(edits, func(a, b edit) int { // from the end, so that positions stay valid
		if a.line != b.line {
			return b.line - a.line
		}
		return b.column - a.column
	})
	for _, e := range edits {
		if e.line < 1 || e.line > len(lines) {
			return "", false
		}
		line := lines[e.line-1]
		if e.old == "" {
			lines[e.line-1] = e.new + line
			continue
		}
		start := e.column - 1
		if start < 0 || start > len(line) {
			return "", false
		}
		if start < len(line) && (line[start] == '"' || line[start] == '\'') {
			start++
		}
		if !strings.HasPrefix(line[start:], e.old) {
			return "", false
		}
		lines[e.line-1] = line[:start] + e.new + line[start+len(e.old):]
	}
	again := &document{text: strings.Join(lines, "")}
	if again.parse() != nil || again.root == nil || !same(again.root, d.root) {
		return "", false
	}
	return d.withEnds(lines), true
}

var (
	indentedList = regexp.MustCompile(`(?m)^( *)[^\s#-][^\n]*:[ \t]*\n(?:[ \t]*#[^\n]*\n)*( *)- `)
	blankLines   = regexp.MustCompile(`\n{3,}`)
)

// indentsLists reports whether the lists of a text are indented relative to their field.
func indentsLists(text string) bool {
	found := indentedList.FindStringSubmatch(text)
	return found != nil && len(found[2]) > len(found[1])
}

// encode returns a value as block YAML.
func encode(root *yaml.Node, indentLists bool) string {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if !indentLists {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(root); err != nil {
		panic("encoding a document: " + err.Error()) // the nodes come from parse or from this package
	}
	return blankLines.ReplaceAllString(b.String(), "\n\n")
}

// join returns documents as one stream.
func join(documents []*document) []byte {
	var b bytes.Buffer
	write := func(text string) {
		if text == "" {
			return
		}
		if b.Len() > 0 {
			if end := strings.IndexByte(text, '\n'); end > 0 && text[end-1] == '\r' {
				b.WriteString("---\r\n")
			} else {
				b.WriteString("---\n")
			}
		}
		b.WriteString(text)
	}
	for _, d := range documents {
		write(d.written())
		for _, after := range d.after {
			write(d.ended(after.written()))
		}
	}
	return b.Bytes()
}
