package migrate

import (
	"strings"
	"testing"
)

// TestPatches verifies that patches of Kustomize are recognized, and are not refused for what they do not contain.
func TestPatches(t *testing.T) {
	const pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\n"
	const whole = pool + "spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: " +
		"a}}}}\n"
	const patch = pool + "spec: {template: {spec: {expireAfter: 72h}}}\n"
	const is = "advice : is a patch of Kustomize; only what it contains is migrated and checked"
	kustomization := func(rest string) File {
		return File{Name: "k/kustomization.yaml", Text: []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + rest)}
	}
	file := func(name, text string) File { return File{Name: name, Text: []byte(text)} }
	for name, c := range map[string]struct {
		files []File
		want  []string
	}{
		"named by a Kustomization": {[]File{kustomization("patches: [{path: p.yaml}]\n"), file("k/p.yaml", patch)}, []string{is}},
		"in the old way":           {[]File{kustomization("patchesStrategicMerge: [../p/p.yaml]\n"), file("p/p.yaml", patch)}, []string{is}},
		"beside the whole object":  {[]File{file("base.yaml", whole), file("overlay.yaml", patch)}, []string{is}},
		"without kind and version": {[]File{file("k/kustomization.yaml", "patches: [{path: p.yaml}]\n"), file("k/p.yaml", patch)}, []string{is}},
		"kubelet settings": {[]File{kustomization("patches: [{path: p.yaml}]\n"), file("k/p.yaml",
			strings.Replace(pool, "/v1", "/v1beta1", 1)+"spec: {template: {spec: {kubelet: {maxPods: 5}}}}\n")},
			[]string{is, "changed apiVersion: ", "changed spec.template.spec.kubelet: is moved to an annotation that the controller reads"}},
		"a part of a rule": {[]File{kustomization("patches: [{path: p.yaml}]\n"),
			file("k/p.yaml", "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {tags: {a: b}}\n")}, []string{is}},
		"of a Provisioner": {[]File{kustomization("patches: [{path: p.yaml}]\n"),
			file("k/p.yaml", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {weight: 5}\n")},
			[]string{"impossible : is a patch of Kustomize for a kind that becomes several objects"}},
		"with a directive": {[]File{file("p.yaml", pool+"$patch: delete\n")}, []string{is}},
		"of a class": {[]File{kustomization("patches: [{path: p.yaml}]\n"), file("k/p.yaml",
			"apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {role: r}\n")},
			[]string{is}},
		"with a mistake": {[]File{kustomization("patches: [{path: p.yaml}]\n"), file("k/p.yaml", strings.Replace(patch, "spec: {",
			"spec: {weight: 500, ", 1))},
			[]string{is, "impossible spec.weight: is 500"}},
		"JSON patch": {[]File{kustomization("patches: [{path: p.yaml, target: {kind: NodePool}}]\n"), file("k/p.yaml",
			"- {op: add, path: /spec/weight, value: 1}\n")},
			[]string{"advice : is a JSON patch of Kustomize; its paths are not migrated"}},
		"inside of a Kustomization": {[]File{kustomization("patches: [{target: {kind: NodePool}, patch: '[{op: remove, path: " +
			"/spec/weight}]'}]\n")},
			[]string{"advice patches[0].patch: a patch inside of a Kustomization is not migrated"}},
		"no patch": {[]File{file("p.yaml", pool+"spec: {weight: 5}\n")}, []string{"impossible spec.template: is required",
			"advice : if it is a patch of Kustomize, "}},
		"no patch yet": {[]File{kustomization("patches: [{path: p.yaml}]\n"), file("p.yaml", patch)},
			[]string{"impossible spec.template.spec.nodeClassRef: is required", "repaired "}},
	} {
		t.Run(name, func(t *testing.T) { checkNotes(t, c.files, c.want) })
	}
}

// TestGated verifies that kinds of a feature gate pass unchanged, with an advice, and that a taint which the controller
// sets itself is reported.
func TestGated(t *testing.T) {
	pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\n" +
		"spec: {template: {spec: {requirements: [], taints: [{key: karpenter.sh/unregistered, effect: NoExecute}], " +
		"nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}}}\n"
	in := "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: a}\nspec: {requirements: [], price: '1'}\n---\n" +
		"apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: a}\nspec: {replicas: 1}\n---\n" + pool
	result := checkNotes(t, []File{{Name: "in.yaml", Text: []byte(in)}}, []string{"advice : is read only with the feature gate NodeOverlay (chart: settings.featureGates.nodeOverlay)",
		"advice : is read only with the feature gate CapacityBuffer (chart: settings.featureGates.capacityBuffer)",
		"advice spec.template.spec.taints[0].key: is karpenter.sh/unregistered, which the controller sets and removes itself"})
	if string(result.Manifests) != in {
		t.Errorf("printed\n%s, want it unchanged", result.Manifests)
	}
}
