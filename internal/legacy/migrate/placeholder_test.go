package migrate

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// toldOf migrates a manifest.
func toldOf(t *testing.T, manifest string) (notes []string, printed string) {
	t.Helper()
	result := Run([]File{{Name: "a.yaml", Text: []byte(manifest)}}, Options{})
	for _, entry := range result.Report {
		for _, n := range entry.Notes {
			notes = append(notes, string(n.Outcome)+" "+n.Field+": "+n.Text)
		}
	}
	return notes, string(result.Manifests)
}

// TestPlaceholders verifies that placeholders are reported, with their field, except in user data, and that real
// values are not.
func TestPlaceholders(t *testing.T) {
	for _, c := range []struct{ value, found string }{
		{"KarpenterNodeInstanceProfile-${CLUSTER_NAME}", "${CLUSTER_NAME}"},
		{"$NODE_PROFILE", "$NODE_PROFILE"},
		{"nodes-of-$cluster-1", "$cluster"},
		{"${CLUSTER_NAME:-default}-nodes", "${CLUSTER_NAME:-default}"},
		{"$(HOME)", ""},
		{"a$", ""},
		{"<YOUR_CLUSTER_NAME>", "<YOUR_CLUSTER_NAME>"},
		{"{{ cluster }}-nodes", "{{ cluster }}"},
		{"YOUR_PROFILE", "YOUR_PROFILE"},
		{"nodes-of-production", ""},
		{"a-$5-{b}", ""},
	} {
		notes, _ := toldOf(t, "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\nspec:\n  provider:\n    instanceProfile: \""+c.value+"\"\n    subnetSelector: {a: b}\n    securityGroupSelector: {a: b}\n")
		at := slices.IndexFunc(notes, func(n string) bool { return strings.Contains(n, "placeholder") })
		switch {
		case c.found == "":
			if at >= 0 {
				t.Errorf("%s: got the note %q, want none", c.value, notes[at])
			}
		case at < 0:
			t.Errorf("%s: no note of a placeholder in %q", c.value, notes)
		case !strings.HasPrefix(notes[at], "advice spec.instanceProfile: "):
			t.Errorf("%s: the note is %q, want advice on spec.instanceProfile", c.value, notes[at])
		case !strings.Contains(notes[at], c.found+" looks like a placeholder"):
			t.Errorf("%s: the note is %q, want it to name %s", c.value, notes[at], c.found)
		}
	}
	if notes, _ := toldOf(t, "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  userData: echo ${HOME} <a>\n"); slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "placeholder") }) {
		t.Errorf("user data: %q", notes)
	}
	notes, _ := toldOf(t, "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n"+
		"  tags: {Name: \"{{cluster}}-{{ nodepool }}-{{nodeclass}}\", owner: \"{{cluster}}-{{team}}\"}\n")
	notes = slices.DeleteFunc(notes, func(n string) bool { return !strings.Contains(n, "placeholder") })
	if len(notes) != 1 || !strings.Contains(notes[0], "spec.tags.owner: ") || !strings.Contains(notes[0], "{{team}} looks like") {
		t.Errorf("tags: %q, want a note on the owner alone", notes)
	}
}

// TestExpireAfterWithoutTemplate verifies that the report on expireAfter matches the output, also for a pool without
// a template.
func TestExpireAfterWithoutTemplate(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1"} {
		notes, printed := toldOf(t, "apiVersion: karpenter.sh/"+version+"\nkind: NodePool\nmetadata: {name: default}\nspec:\n  disruption:\n    consolidationPolicy: WhenEmpty\n    expireAfter: 2592000\n")
		reported := slices.ContainsFunc(notes, func(n string) bool {
			return strings.Contains(n, "moved to spec.template.spec.expireAfter")
		})
		var pool struct {
			Spec struct {
				Disruption map[string]any
				Template   struct{ Spec map[string]any }
			}
		}
		if err := yaml.Unmarshal([]byte(printed), &pool); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		switch stays := pool.Spec.Disruption["expireAfter"]; {
		case !reported:
			t.Errorf("%s: told is false, %q\n%s", version, notes, printed)
		case stays != nil:
			t.Errorf("%s: stays is %v, want nil, %q\n%s", version, stays, notes, printed)
		case pool.Spec.Template.Spec["expireAfter"] != "720h":
			t.Errorf("%s: pool.Spec.Template.Spec[\"expireAfter\"] is %v, want \"720h\", %q\n%s", version,
				pool.Spec.Template.Spec["expireAfter"], notes, printed)
		}
	}
}
