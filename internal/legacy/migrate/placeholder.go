package migrate

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// placeholder matches a value, or a part of one, that should have been replaced: ${NAME}, ${NAME:-default}, $NAME,
// <YOUR_NAME>, {{ name }}, YOUR_NAME.
var placeholder = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_.]*(?::?[-=?+][^{}]*)?\}|\$[A-Za-z_][A-Za-z0-9_]*|<[A-Za-z][A-Za-z0-9_. ` +
	`-]*>|\{\{[^{}]+\}\}|\b(?:YOUR|REPLACE|CHANGE)_[A-Z0-9_]+\b`)

// placeholders reports values in printed objects and in values of the chart that look like placeholders. User data,
// which may contain such words, is skipped.
func (m *migration) placeholders() {
	for _, i := range m.items {
		for _, d := range i.documents() {
			if !d.gone && d.root != nil && kinds[text(at(d.root, "kind"))] != "" {
				i.placeholdersIn(d.root, "")
			}
		}
	}
	for _, c := range m.charts {
		c.placeholdersIn(c.root, c.field)
	}
}

func (i *item) placeholdersIn(root *yaml.Node, field string) {
	class := text(at(root, "kind")) == awsv1.Kind
	eachText(root, field, func(path, value string) {
		left := value
		if class && strings.HasPrefix(path, "spec.tags.") { // the controller replaces some
			tagged := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}}
			tagged.Spec.Tags = map[string]string{"": value}
			left = tagged.ResolvedTags("pool", "cluster")[""]
		}
		if found := placeholder.FindString(left); found != "" {
			i.note(Advice, path, "is %q, and %s looks like a placeholder that nothing replaces; set the value", value, found)
		}
	})
}

// eachText calls give for all texts of a document with their fields.
func eachText(node *yaml.Node, path string, give func(path, value string)) {
	if node == nil {
		return
	}
	switch node.Kind {
	case yaml.DocumentNode:
		for _, child := range node.Content {
			eachText(child, path, give)
		}
	case yaml.SequenceNode:
		for n, child := range node.Content {
			eachText(child, path+"["+strconv.Itoa(n)+"]", give)
		}
	case yaml.MappingNode:
		for n := 0; n+1 < len(node.Content); n += 2 {
			name := node.Content[n].Value
			if name == "userData" {
				continue
			}
			field := name
			if path != "" {
				field = path + "." + name
			}
			eachText(node.Content[n+1], field, give)
		}
	case yaml.ScalarNode:
		give(path, node.Value)
	}
}
