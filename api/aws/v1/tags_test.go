package v1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolvedTags(t *testing.T) {
	class := &EC2NodeClass{}
	class.Name = "gpu"
	class.Spec.Tags = map[string]string{"plain": "a", "Name": "{{cluster}}-{{ nodepool }}", "class": "{{nodeclass}}",
		"twice": "{{cluster}}{{cluster}}",
		"claim": "{{nodeclaim}} of {{cluster}}", "braces": "{nodepool} {{}} {{node pool}} {{{cluster}}}", "open": "{{cluster"}
	own := map[string]string{"plain": "a", "class": "gpu", "twice": "prodprod", "claim": "{{nodeclaim}} of prod",
		"braces": "{nodepool} {{}} {{node pool}} {prod}", "open": "{{cluster"}
	if diff := cmp.Diff(own, class.ResolvedTags("", "prod")); diff != "" {
		t.Errorf("without a pool -want +got:\n%s", diff)
	}
	own["Name"] = "prod-batch"
	if diff := cmp.Diff(own, class.ResolvedTags("batch", "prod")); diff != "" {
		t.Errorf("of a pool -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"{{node pool}}", "{{nodeclaim}}", "{{}}"}, class.UnknownPlaceholders()); diff != "" {
		t.Errorf("unknown -want +got:\n%s", diff)
	}
	// A name in braces is text, and is not resolved again.
	if got := class.ResolvedTags("{{cluster}}", "prod")["Name"]; got != "prod-{{cluster}}" {
		t.Errorf("of a pool with braces in its name: %q", got)
	}
	if got := new(EC2NodeClass).ResolvedTags("", ""); got == nil || len(got) > 0 {
		t.Errorf("a class without tags has %v", got)
	}
}
