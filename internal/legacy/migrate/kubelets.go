package migrate

import (
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// This file moves kubelet settings, which belonged to the pool, to the class: a class that pools use with different
// settings becomes several classes.

// user is a pool that uses a class.
type user struct {
	*item
	kubelet *yaml.Node // its own settings; nil: those of the class
}

// kubelets moves the kubelet settings of pools to their classes, as far as those are in the input.
func (m *migration) kubelets() {
	users := map[string][]user{}
	for _, i := range m.items {
		if i.is(karpv1.Group, "NodePool") && !i.gone {
			class := text(at(i.root, "spec", "template", "spec", "nodeClassRef", "name"))
			if i.patch && class == "" {
				user{i, i.kubelet()}.keepKubelet()
			} else if text(at(i.root, "spec", "template", "spec", "nodeClassRef", "kind")) == awsv1.Kind {
				users[class] = append(users[class], user{i, i.kubelet()})
			} else if i.kubelet() != nil {
				i.note(Changed, "spec.template.spec.kubelet", "omitted, because only an EC2NodeClass has kubelet settings")
				take(i.root, "metadata", "annotations", v1beta1.AnnotationKubelet)
				prune(i.root, "metadata", "annotations")
				i.anew = true
			}
		}
	}
	taken := map[string]bool{}
	for _, i := range m.items {
		if i.is(awsv1.Group, "EC2NodeClass") && !i.gone {
			taken[i.name] = true
		}
	}
	for _, i := range m.items {
		if i.is(awsv1.Group, "EC2NodeClass") && !i.gone {
			if i.share(users[i.name], taken) {
				m.ahead(i, users[i.name])
			}
			delete(users, i.name)
		}
	}
	for _, i := range m.items { // classes that are not in the input, in the order of the pools
		for _, u := range users[text(at(i.root, "spec", "template", "spec", "nodeClassRef", "name"))] {
			if u.item == i && u.kubelet != nil {
				u.keepKubelet()
			}
		}
	}
}

// kubelet removes a pool's settings and returns them: the field, or the result of a conversion.
func (i *item) kubelet() *yaml.Node {
	field := take(i.root, "spec", "template", "spec", "kubelet")
	noted := text(at(i.root, "metadata", "annotations", v1beta1.AnnotationKubelet))
	if field != nil {
		i.anew = true
	}
	if noted != "" && empty(field) {
		d := document{text: noted}
		if d.parse() == nil && d.root != nil {
			block(d.root)
			field = d.root
		}
	}
	if empty(field) {
		return nil
	}
	if take(field, "containerRuntime") != nil {
		i.note(Changed, "spec.template.spec.kubelet.containerRuntime", "has no effect; omitted, because containerd is the only container runtime")
	}
	return field
}

// keepKubelet keeps the settings in the annotation that the controller reads.
func (u user) keepKubelet() {
	compact, err := json.Marshal(plain(u.kubelet))
	if u.kubelet == nil || err != nil || text(at(u.root, "metadata", "annotations", v1beta1.AnnotationKubelet)) == string(compact) {
		return
	}
	annotation := scalar(string(compact))
	annotation.HeadComment = comments(u.kubelet)
	put(u.root, annotation, "metadata", "annotations", v1beta1.AnnotationKubelet)
	u.anew = true
	class := strings.TrimSpace("the node class " + text(at(u.root, "spec", "template", "spec", "nodeClassRef", "name")))
	u.note(Changed, "spec.template.spec.kubelet",
		"is moved to an annotation that the controller reads, because %s is not in the input; "+
			"it is better to set spec.kubelet of the node class", class)
}

// ahead prints a class before the pools whose settings it has now: when they are applied in that order, their
// settings never differ.
func (m *migration) ahead(class *item, users []user) {
	from := slices.Index(m.all, class.document)
	for _, u := range users {
		if to := slices.Index(m.all, u.document); to < from {
			m.all = slices.Insert(slices.Delete(m.all, from, from+1), to, class.document)
			from = to
		}
	}
}

// share sets the settings of the pools that use a class, and gives pools with other settings a copy of it. It reports
// whether the class itself has changed.
func (i *item) share(users []user, taken map[string]bool) (changed bool) {
	own := at(i.root, "spec", "kubelet")
	any := false
	for _, u := range users {
		any = any || u.kubelet != nil
	}
	if !any {
		return false
	}
	first := users[0].kubelet
	for _, u := range users {
		if u.kubelet == nil {
			first = own // a pool uses the class as it is
		}
	}
	if changed = first != nil && !alike(first, own); changed {
		moved := clone(first)
		set(i.root, moved, "spec", "kubelet")
		i.anew = true
		i.note(Changed, "spec.kubelet", "is set to the kubelet settings of the NodePools that use the node class")
		i.note(Advice, "spec.kubelet", "applied to a running cluster, these settings also affect other NodePools that use the node class "+
			"and are not in the input, and the nodes of these NodePools drift")
	}
	copies := map[string]*yaml.Node{} // by name
	var names []string
	for _, u := range users {
		if u.kubelet == nil {
			continue
		}
		take(u.root, "metadata", "annotations", v1beta1.AnnotationKubelet)
		prune(u.root, "metadata", "annotations")
		u.anew = true
		class := i.name
		if !alike(u.kubelet, at(i.root, "spec", "kubelet")) {
			class = ""
			for _, name := range names {
				if alike(copies[name], u.kubelet) {
					class = name
				}
			}
			if class == "" {
				class = i.name + "-" + u.name
				for taken[class] {
					class += "-kubelet"
				}
				taken[class] = true
				copies[class], names = u.kubelet, append(names, class)
				i.copyAs(class, u.kubelet)
			}
			set(u.root, scalar(class), "spec", "template", "spec", "nodeClassRef", "name")
		}
		u.note(Changed, "spec.template.spec.kubelet", "is moved to spec.kubelet of EC2NodeClass %s", class)
		u.note(Advice, "spec.template.spec.kubelet",
			"applied to a running cluster, the NodePool keeps its nodes, because the settings are the same; "+
				"kubectl apply keeps the annotation %s on the NodePool, which takes precedence over the settings of the node class; "+
				"remove it before you change these settings", v1beta1.AnnotationKubelet)
	}
	return changed
}

// copyAs adds a copy of a class, with other kubelet settings, after it.
func (i *item) copyAs(name string, kubelet *yaml.Node) {
	copied := clone(i.root)
	copied.HeadComment, copied.FootComment = "", ""
	set(copied, scalar(name), "metadata", "name")
	set(copied, clone(kubelet), "spec", "kubelet")
	i.after = append(i.after, &document{root: copied, anew: true, text: i.text})
	i.Became = append(i.Became, "EC2NodeClass "+i.name, "EC2NodeClass "+name)
	i.note(Changed, "", "a copy named %s is added with the kubelet settings of its NodePool", name)
}
