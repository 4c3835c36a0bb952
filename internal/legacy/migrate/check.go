package migrate

import (
	"encoding/json"
	"slices"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// identity returns a name of a printed object of this project's kinds. It returns an empty string for kinds of other
// projects, whatever their names. The objects are cluster-scoped.
func (d *document) identity() string {
	kind, name := text(at(d.root, "kind")), text(at(d.root, "metadata", "name"))
	group, _, _ := strings.Cut(text(at(d.root, "apiVersion")), "/")
	if d.gone || name == "" || kinds[kind] == "" || kinds[kind] != group {
		return ""
	}
	return kind + " " + name
}

// documents returns the documents in which an item is printed.
func (i *item) documents() []*document {
	return append([]*document{i.document}, i.after...)
}

// unique reports objects that are printed more than once: when they are applied, the last one would silently win.
func (m *migration) unique() {
	origins := map[string]string{}
	for _, i := range m.items {
		for _, d := range i.documents() {
			object := d.identity()
			if object == "" || i.patch {
				continue
			}
			if first, again := origins[object]; again {
				i.note(Impossible, "", "%s is printed twice, also for %s; when applied, the last one overwrites the first; remove one of them", object, first)
				continue
			}
			origins[object] = i.Object + " (" + i.Origin + ")"
		}
	}
}

// check runs the validation of an API server on the printed objects.
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
				faults := m.options.Check(object)
				if i.patch {
					faults = slices.DeleteFunc(faults, func(f Fault) bool { return d.excuses(f) })
				}
				i.rejections(d, faults, before, len(documents) > 1)
				if i.kind == "NodePool" && slices.ContainsFunc(faults, func(f Fault) bool { return f.missing() && f.Field == "spec.template" }) {
					i.note(Advice, "", "if it is a patch of Kustomize, pass its kustomization.yaml too")
				}
			}
		}
	}
}

// expressions adds notes on the expressions of the printed classes, which need a feature gate.
func (m *migration) expressions() {
	for _, i := range m.items {
		for _, d := range i.documents() {
			if d.gone || d.proposed || text(at(d.root, "kind")) != awsv1.Kind || text(at(d.root, "apiVersion")) != awsv1.GroupVersion.String() {
				continue
			}
			class := &awsv1.EC2NodeClass{}
			object, err := json.Marshal(plain(d.root))
			if err != nil || json.Unmarshal(object, class) != nil {
				continue // the check of the API server reports it
			}
			for _, e := range class.Spec.Kubelet.Expressions() {
				i.note(Advice, e.Path(), "is an expression: start the controller with --aws-feature-gates=NodeClassCEL=true")
			}
		}
	}
}

// missing reports whether the fault is that a field is not there.
func (f Fault) missing() bool { return f.Problem == "is required" }

// rejections adds notes on why an API server would reject one of an item's objects, unless a previous note covers the
// same field. It names the object if there are several, or if it was created from a node group.
func (i *item) rejections(d *document, faults []Fault, before []Note, several bool) {
	name := ""
	if several || d.proposed {
		name = strings.TrimSpace(text(at(d.root, "kind")) + " " + text(at(d.root, "metadata", "name")))
	}
	reported := Entry{Notes: slices.Clone(before)}
	if d.proposed { // those are about fields of groups
		reported.Notes = nil
	}
	for _, fault := range faults {
		if !reported.impossibleAt(fault.Field) {
			reported.note(Impossible, fault.Field, "%s", fault.Problem)
			i.note(Impossible, under(name, fault.Field), "%s", fault.Problem)
		}
	}
}

// checked reports whether objects of a kind are printed for an API server: those of this project's groups, except
// objects that are left in an older version because they cannot be migrated, which is reported.
func checked(apiVersion, kind string) bool {
	if slices.Contains(printed[apiVersion], kind) {
		return true
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	known := slices.Contains([]string{karpv1.Group, awsv1.Group, kwokv1alpha1.Group}, group)
	return known && kinds[kind] == "" && !strings.HasSuffix(kind, "List")
}

// impossibleAt reports whether a previous note says that a field, or its parent, is impossible. Fields of Provisioners have
// their former names.
func (e *Entry) impossibleAt(field string) bool {
	for _, n := range e.Notes {
		reported := sinceTemplate(n.Field)
		if rest, found := strings.CutPrefix(sinceTemplate(field),
			reported); n.Outcome == Impossible && reported != "" && found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// sinceTemplate returns a path without the parents that pools have and Provisioners do not.
func sinceTemplate(path string) string {
	for _, around := range []string{"spec.template.metadata.", "spec.template.spec.", "spec."} {
		if rest, found := strings.CutPrefix(path, around); found {
			return strings.Replace(rest, "limits.resources.", "limits.", 1)
		}
	}
	return path
}
