package migrate

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// isList reports whether an object contains others, as in the output of kubectl and the API.
func isList(root *yaml.Node) bool {
	return strings.HasSuffix(text(at(root, "kind")), "List") && members(at(root, "items")) != nil
}

// flat returns the members of a list, including those of nested lists. Members may omit kind and version if the kind
// of the list implies them, as in a ProvisionerList from the API.
func flat(list *yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	kind := strings.TrimSuffix(text(at(list, "kind")), "List")
	for _, member := range members(at(list, "items")) {
		if kind != "" && member.Kind == yaml.MappingNode && at(member, "kind") == nil {
			lead(member, "kind", kind)
			if at(member, "apiVersion") == nil {
				lead(member, "apiVersion", text(at(list, "apiVersion")))
			}
		}
		if isList(member) {
			all = append(all, flat(member)...)
		} else {
			all = append(all, member)
		}
	}
	return all
}

// lead inserts a field before the others.
func lead(node *yaml.Node, name, value string) {
	node.Content = append([]*yaml.Node{scalar(name), scalar(value)}, node.Content...)
}

// readList creates documents from a list's members if one of them is relevant, or would change, and reports whether
// it did. Otherwise the list is kept.
func (m *migration) readList(d *document) bool {
	trial := migration{options: m.options}
	var documents []*document
	var unread []error
	for n, member := range flat(d.root) {
		block(member)
		one := &document{origin: d.origin + ", item " + itoa(n+1), text: encode(member, false), live: d.live}
		err := one.parse()
		tried := *one
		tried.root = clone(one.root)
		trial.adopt(&tried, err)
		documents, unread = append(documents, one), append(unread, err)
	}
	d.root = nil // for thousands of members, once is enough
	trial.sources()
	relevant := trial.scaler != nil
	for _, i := range trial.items {
		trial.item(i)
		relevant = relevant || kinds[i.kind] != "" || i.kind == "Node" || i.changed() || len(i.Notes) > 0
	}
	if !relevant {
		if err := d.parse(); err != nil { // it was parsed successfully before
			d.root = nil
		}
		return false
	}
	for n, one := range documents {
		m.adopt(one, unread[n])
	}
	return true
}
