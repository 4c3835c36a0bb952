package migrate

import (
	"slices"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// identity names a printed object of ours; empty for what other projects' definitions are of, whatever they call their kinds.
// Objects of ours have no namespaces.
func (d *document) identity() string {
	kind, name := text(at(d.root, "kind")), text(at(d.root, "metadata", "name"))
	group, _, _ := strings.Cut(text(at(d.root, "apiVersion")), "/")
	if d.gone || name == "" || kinds[kind] == "" || kinds[kind] != group {
		return ""
	}
	return kind + " " + name
}

// documents are those that an item is printed as.
func (i *item) documents() []*document {
	return append([]*document{i.document}, i.after...)
}

// unique says which objects are printed more than once: applied, the last one would silently win.
func (m *migration) unique() {
	origins := map[string]string{}
	for _, i := range m.items {
		for _, d := range i.documents() {
			object := d.identity()
			if object == "" {
				continue
			}
			if first, again := origins[object]; again {
				i.note(Impossible, "", "%s is printed twice, from %s too: applied, the last one would win; leave one of them out", object, first)
				continue
			}
			origins[object] = i.Object + " (" + i.Origin + ")"
		}
	}
}

// check asks what an API server would say of our objects as they are printed.
func (m *migration) check() {
	if m.options.Check == nil {
		return
	}
	for _, i := range m.items {
		documents := slices.DeleteFunc(i.documents(), func(d *document) bool {
			return d.gone || d.root == nil || !checked(text(at(d.root, "apiVersion")), text(at(d.root, "kind")))
		})
		before := slices.Clone(i.Notes)
		for _, d := range documents {
			if object, ok := plain(d.root).(map[string]any); ok {
				i.answer(d, m.options.Check(object), before, len(documents) > 1)
			}
		}
	}
}

// answer notes why an API server would refuse one of an item's objects, unless something was said before of the same field of
// it. An object of several, or of a group's, is named.
func (i *item) answer(d *document, faults []Fault, before []Note, several bool) {
	name := ""
	if several || d.proposed {
		name = strings.TrimSpace(text(at(d.root, "kind")) + " " + text(at(d.root, "metadata", "name")))
	}
	said := Entry{Notes: slices.Clone(before)}
	if d.proposed { // those are about fields of groups
		said.Notes = nil
	}
	for _, fault := range faults {
		if !said.told(fault.Field) {
			said.note(Impossible, fault.Field, "%s", fault.Problem)
			i.note(Impossible, under(name, fault.Field), "%s", fault.Problem)
		}
	}
}

// checked reports whether objects of a kind are printed for an API server to take: those of our groups, but for what is left
// in an older version because it could not be brought over, which has been told.
func checked(apiVersion, kind string) bool {
	if slices.Contains(printed[apiVersion], kind) {
		return true
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	ours := slices.Contains([]string{karpv1.Group, awsv1.Group, kwokv1alpha1.Group}, group)
	return ours && kinds[kind] == "" && !strings.HasSuffix(kind, "List")
}

// told reports whether it was said already that a field, or what it belongs to, is impossible. Fields of Provisioners are
// called as they were.
func (e *Entry) told(field string) bool {
	for _, n := range e.Notes {
		said := sinceTemplate(n.Field)
		if rest, found := strings.CutPrefix(sinceTemplate(field), said); n.Outcome == Impossible && said != "" && found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// sinceTemplate is a path without what pools have around it and Provisioners have not.
func sinceTemplate(path string) string {
	for _, around := range []string{"spec.template.metadata.", "spec.template.spec.", "spec."} {
		if rest, found := strings.CutPrefix(path, around); found {
			return strings.Replace(rest, "limits.resources.", "limits.", 1)
		}
	}
	return path
}
