package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/doctor"
	"github.com/karpenter-go/karpenter/test/permission"
)

// TestDoctorKnows holds the rights that `karpenter doctor` asks about to those that the chart gives, in both directions.
func TestDoctorKnows(t *testing.T) {
	for provider, with := range map[string]values{"kwok": installed(), "aws": onAWS()} {
		given, asked := map[string]bool{}, map[string]bool{}
		for _, g := range grants(t, with) {
			// Only clusters with a certain admission plugin want them, which nobody can ask for.
			if !strings.HasSuffix(g.Resource, "/finalizers") {
				given[g.String()+g.Names] = true
			}
		}
		for _, right := range doctor.Rights(doctor.Installation{Provider: provider, LeaseNamespace: namespace, LeaseName: "karpenter-leader-election"}) {
			var names []string
			if right.Name != "" {
				names = []string{right.Name}
			}
			for _, verb := range right.Verbs {
				g := permission.Grant{Namespace: right.Namespace, Verb: verb, Group: right.Group, Resource: right.Resource, Names: fmt.Sprint(names)}
				asked[g.String()+g.Names] = true
			}
		}
		for right := range given {
			if !asked[right] {
				t.Errorf("%s: the chart gives %q, of which doctor knows nothing", provider, right)
			}
		}
		for right := range asked {
			if !given[right] {
				t.Errorf("%s: doctor wants %q, which the chart does not give", provider, right)
			}
		}
	}
}
