package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// This file handles values with their comments. A path is a list of field names. An absent value is nil, and so are
// its fields.

// at returns the value at a path of fields.
func at(node *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		i := index(node, name)
		if i < 0 {
			return nil
		}
		node = node.Content[i+1]
	}
	return node
}

// index returns the position of a field's name in the content of a mapping, or -1.
func index(node *yaml.Node, name string) int {
	if node == nil || node.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// text returns a scalar's value, and an empty string for anything else.
func text(node *yaml.Node) string {
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		return ""
	}
	return node.Value
}

// texts returns the scalars of a list, or a single scalar.
func texts(node *yaml.Node) []string {
	if node == nil {
		return nil
	}
	if node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		return []string{node.Value}
	}
	var all []string
	if node.Kind == yaml.SequenceNode {
		for _, member := range node.Content {
			all = append(all, text(member))
		}
	}
	return all
}

// members returns those of a list.
func members(node *yaml.Node) []*yaml.Node {
	if node == nil || node.Kind != yaml.SequenceNode {
		return nil
	}
	return node.Content
}

// fields returns the names in a mapping, in their order.
func fields(node *yaml.Node) []string {
	var names []string
	if node != nil && node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			names = append(names, node.Content[i].Value)
		}
	}
	return names
}

// empty reports whether a value has no content.
func empty(node *yaml.Node) bool {
	return node == nil || node.Tag == "!!null" || node.Kind != yaml.ScalarNode && len(node.Content) == 0
}

// ambiguous matches texts that YAML 1.1, which kubectl reads, parses as booleans, or as base-60 numbers.
var ambiguous = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)

func scalar(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if !readsAsText(value) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// readsAsText reports whether every version of YAML parses a text without quotes as that text. Most texts are words,
// which need no parser: a parser needs 30 times as long.
func readsAsText(value string) bool {
	if isWord(value) {
		return len(value) > len("false") || !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"},
			strings.ToLower(value))
	}
	return !ambiguous.MatchString(value) && parsesAsText(value)
}

// isWord reports whether a text consists of letters, digits and separators of names, and starts with a letter.
func isWord(value string) bool {
	for i := range len(value) {
		letter := value[i] >= 'a' && value[i] <= 'z' || value[i] >= 'A' && value[i] <= 'Z'
		if !letter && (i == 0 || !(value[i] >= '0' && value[i] <= '9') && !strings.ContainsRune("-_./", rune(value[i]))) {
			return false
		}
	}
	return value != ""
}

func parsesAsText(value string) bool {
	var plain yaml.Node
	return yaml.Unmarshal([]byte(value), &plain) == nil && len(plain.Content) == 1 && plain.Content[0].Tag == "!!str" && plain.Content[0].Value == value
}

func integer(value int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(value, 10)}
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func sequence(members ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: members}
}

// set sets a field, and creates missing mappings on the path.
func set(node, value *yaml.Node, path ...string) {
	for len(path) > 1 {
		below := at(node, path[0])
		if below == nil || below.Kind != yaml.MappingNode {
			below = mapping()
			set(node, below, path[0])
		}
		node, path = below, path[1:]
	}
	if i := index(node, path[0]); i >= 0 {
		node.Content[i+1] = value
		return
	}
	node.Style &^= yaml.FlowStyle
	node.Content = append(node.Content, scalar(path[0]), value)
}

// take removes a field and returns its value. The comments of its name are moved to the value.
func take(node *yaml.Node, path ...string) *yaml.Node {
	node = at(node, path[:len(path)-1]...)
	i := index(node, path[len(path)-1])
	if i < 0 {
		return nil
	}
	name, value := node.Content[i], node.Content[i+1]
	node.Content = slices.Delete(node.Content, i, i+2)
	value.HeadComment = joinComments(name.HeadComment, value.HeadComment)
	if value.LineComment == "" {
		value.LineComment = name.LineComment
	}
	value.FootComment = joinComments(value.FootComment, name.FootComment)
	return value
}

// put sets a field to a value from take, with its comments before the field.
func put(node, value *yaml.Node, path ...string) {
	head, foot := value.HeadComment, value.FootComment
	value.HeadComment, value.FootComment = "", ""
	set(node, value, path...)
	parent := at(node, path[:len(path)-1]...)
	name := parent.Content[index(parent, path[len(path)-1])]
	name.HeadComment, name.FootComment = joinComments(name.HeadComment, head), joinComments(name.FootComment, foot)
}

// prune removes empty mappings on a path, from the innermost.
func prune(node *yaml.Node, path ...string) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if below := at(node, path...); below == nil || !empty(below) || comments(below) != "" {
			return
		}
		comment := take(node, path...)
		if parent := at(node, path[:len(path)-1]...); parent != nil && comments(comment) != "" {
			parent.HeadComment = joinComments(parent.HeadComment, comments(comment))
		}
	}
}

func joinComments(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "\n")
}

// comments returns all comments of a value and its descendants.
func comments(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	all := []string{node.HeadComment, node.LineComment}
	for _, child := range node.Content {
		all = append(all, comments(child))
	}
	return joinComments(append(all, node.FootComment)...)
}

func clone(node *yaml.Node) *yaml.Node {
	if node == nil {
		return nil
	}
	copied := *node
	copied.Content = make([]*yaml.Node, len(node.Content))
	for i, child := range node.Content {
		copied.Content[i] = clone(child)
	}
	return &copied
}

// same reports whether two values are equal, ignoring the order of fields, comments and style.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.MappingNode:
		for _, name := range fields(a) {
			if other := at(b, name); other == nil || !same(at(a, name), other) {
				return false
			}
		}
		return true
	case yaml.SequenceNode:
		return slices.EqualFunc(a.Content, b.Content, same)
	}
	return a.Tag == b.Tag && a.Value == b.Value
}

// alike reports whether two values are equal as in same, but also accepts different notations of amounts and
// durations.
func alike(a, b *yaml.Node) bool {
	if same(a, b) {
		return true
	}
	if a == nil || b == nil || a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.MappingNode:
		for _, name := range fields(a) {
			if other := at(b, name); other == nil || !alike(at(a, name), other) {
				return false
			}
		}
		return true
	case yaml.SequenceNode:
		return slices.EqualFunc(a.Content, b.Content, alike)
	}
	return alikeScalars(a, b)
}

func alikeScalars(a, b *yaml.Node) bool {
	if a.Tag == "!!bool" || b.Tag == "!!bool" || a.Tag == "!!null" || b.Tag == "!!null" {
		return false
	}
	if x, err := time.ParseDuration(a.Value); err == nil {
		y, err := time.ParseDuration(b.Value)
		return err == nil && x == y
	}
	x, err := karpv1.ParseQuantity(a.Value)
	if err != nil {
		return false
	}
	y, err := karpv1.ParseQuantity(b.Value)
	return err == nil && x.Cmp(y) == 0
}

// nodeOf converts an object to a value, with its fields in the order of its type.
func nodeOf(object any) (*yaml.Node, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	node, err := decoded(decoder)
	if err != nil {
		return nil, fmt.Errorf("reading what was encoded: %w", err)
	}
	block(node)
	return node, nil
}

// decoded returns the next JSON value.
func decoded(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := mapping()
		if token == '[' {
			node = sequence()
		}
		for decoder.More() { // names and values of a mapping alike
			below, err := decoded(decoder)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, below)
		}
		_, err := decoder.Token() // the end
		return node, err
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(token.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: token.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(token)}, nil
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token}, nil // block sets the style
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// block removes the JSON style: braces, brackets and quotes.
func block(node *yaml.Node) {
	node.Style &^= yaml.FlowStyle
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" {
		node.Style = scalar(node.Value).Style
		if strings.Contains(node.Value, "\n") {
			node.Style = yaml.LiteralStyle
		}
	}
	for i, child := range node.Content {
		block(child)
		if node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "values" && child.Kind == yaml.SequenceNode {
			child.Style |= yaml.FlowStyle // values of a requirement
		}
	}
}

// plain returns the value as decoded JSON.
func plain(node *yaml.Node) any {
	switch {
	case node == nil:
		return nil
	case node.Kind == yaml.MappingNode:
		m := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			m[node.Content[i].Value] = plain(node.Content[i+1])
		}
		return m
	case node.Kind == yaml.SequenceNode:
		s := make([]any, 0, len(node.Content))
		for _, member := range node.Content {
			s = append(s, plain(member))
		}
		return s
	}
	var value any
	if node.Decode(&value) != nil {
		return node.Value
	}
	switch value.(type) {
	case nil, bool, string, int, int64, uint64, float64:
		return value
	}
	return node.Value // a date is a string in Kubernetes
}

func under(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

func itoa(i int) string { return strconv.Itoa(i) }
