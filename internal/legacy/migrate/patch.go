package migrate

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// This file recognizes patches of Kustomize: objects that contain only what they change
// (https://kubernetes.io/docs/tasks/manage-kubernetes-objects/kustomization/#customizing).

// patchFiles returns the files that a Kustomization of the input uses as patches.
func (m *migration) patchFiles() []string {
	var files []string
	for _, i := range m.items {
		if !i.isKustomization() {
			continue
		}
		named := members(at(i.root, "patchesStrategicMerge"))
		for n, patch := range members(at(i.root, "patches")) {
			named = append(named, at(patch, "path"))
			inline, target := text(at(patch, "patch")), text(at(patch, "target", "kind"))
			if inline != "" && (kinds[target] != "" || strings.Contains(inline, "karpenter")) {
				i.note(Advice, "patches["+itoa(n)+"].patch", "a patch inside of a Kustomization is not migrated; write it to a file of its own")
			}
		}
		for _, name := range named {
			files = append(files, path.Join(path.Dir(i.file()), text(name)))
		}
	}
	return files
}

// isKustomization reports whether an item is a Kustomization. Its kind and version have defaults.
func (i *item) isKustomization() bool {
	name, _, _ := strings.Cut(path.Base(i.file()), ".")
	return i.is("kustomize.config.k8s.io", "Kustomization") || i.kind == "" && i.apiVersion == "" && strings.EqualFold(name, "kustomization")
}

// file returns the name of the item's file.
func (i *item) file() string {
	name, _, _ := strings.Cut(i.origin, ": document ")
	return name
}

// findPatches marks the items that are patches: a Kustomization names their file, they have a directive, or the input
// has a complete object of their name.
func (m *migration) findPatches() {
	files := m.patchFiles()
	complete := map[string]bool{}
	for _, i := range m.items {
		if i.complete() {
			complete[i.kind+" "+i.name] = true
		}
	}
	for _, i := range m.items {
		listed := slices.Contains(files, i.file())
		switch {
		case listed && i.root != nil && i.root.Kind == yaml.SequenceNode:
			i.Notes = nil // it is no object, which is right here
			i.note(Advice, "", "is a JSON patch of Kustomize; its paths are not migrated")
		case kinds[i.kind] == "" || i.root == nil:
		case (listed || directive(i.root)) && translated(i.kind):
			i.root, i.kind = nil, "" // is printed as it is, and not translated
			i.note(Impossible, "", "is a patch of Kustomize for a kind that becomes several objects; migrate what kubectl kustomize prints")
		case listed, directive(i.root), !i.complete() && complete[i.kind+" "+i.name]:
			i.patch = true
			i.note(Advice, "", "is a patch of Kustomize; only what it contains is migrated and checked")
		}
	}
}

// excuses reports whether a fault may be due to what a patch does not contain: a missing field, or a rule about several
// fields of an object.
func (d *document) excuses(f Fault) bool {
	value := at(d.root, strings.Split(f.Field, ".")...)
	return f.missing() || strings.Contains(f.Field, "$patch") || f.Field == "" || value != nil && value.Kind == yaml.MappingNode
}

// translated reports whether objects of the kind are translated together, which needs all of their fields.
func translated(kind string) bool { return kind == "Provisioner" || kind == "AWSNodeTemplate" }

// complete reports whether an object has the fields that every object of its kind has.
func (i *item) complete() bool {
	switch i.kind {
	case "NodePool":
		return at(i.root, "spec", "template", "spec", "nodeClassRef") != nil
	case "EC2NodeClass":
		return at(i.root, "spec", "subnetSelectorTerms") != nil
	}
	return true
}

// directive reports whether an object has a directive of strategic merge patches.
func directive(node *yaml.Node) bool {
	return node.Kind == yaml.MappingNode && at(node, "$patch") != nil || slices.ContainsFunc(node.Content, directive)
}

// gated contains kinds that the controller reads only with the feature gate of the same name, and their groups.
var gated = map[string]string{karpv1alpha1.Kind: karpv1.Group, autoscalingv1beta1.Kind: autoscalingv1beta1.Group}
