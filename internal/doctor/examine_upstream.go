package doctor

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// upstreamChecks are those that also hold for upstream's Karpenter. The others compare the cluster with what this
// project's controller needs; their fixes would replace CRDs and permissions of a controller that works.
var upstreamChecks = []check{unread, account, upstream, pools, limits, orphans, budgets, classes, clock, controllers,
	claims, finalizers, drains, scheduler,
	webhooks}

// ofUpstream returns the object that shows that the cluster is run by upstream's Karpenter, and how, "" if it is
// not: its image runs and no other controller, or no controller is visible and the CRDs do not serve v1beta1, which
// those of this project do and those of upstream do not (https://karpenter.sh/docs/upgrading/upgrade-guide/,
// 1.1.0).
func (f *Facts) ofUpstream() (object, how string) {
	for i := range f.Controllers {
		c := &f.Controllers[i]
		if c.Upstream == "" {
			return "", ""
		}
		object, how = c.object(), "runs the image "+c.Upstream
	}
	if object != "" {
		return object, how
	}
	const name = "nodepools.karpenter.sh"
	at := slices.IndexFunc(f.Installed, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name })
	if at < 0 || slices.ContainsFunc(f.Installed[at].Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1beta1" }) {
		return "", ""
	}
	return "customresourcedefinition/" + name, "is not the CRD of this project, and no controller is visible"
}

// upstream returns one finding about upstream's Karpenter: alone, or beside the controller of this project.
func upstream(f *Facts, _ Options) []cloud.Finding {
	object, how := f.ofUpstream()
	if object != "" {
		return []cloud.Finding{found(UpstreamRuns, object, "the cluster is run by another Karpenter than that of this project: it "+how+
			"; its CRDs, permissions and leader election are not examined",
			"nothing for that Karpenter; docs/migrating.md of this project describes how to replace it")}
	}
	at := slices.IndexFunc(f.Controllers, func(c Controller) bool { return c.Upstream != "" })
	if at < 0 {
		return nil
	}
	c := &f.Controllers[at]
	return []cloud.Finding{found(UpstreamRuns, c.object(),
		fmt.Sprintf("it runs the image %s beside the controller of this project: both act on the same NodePools", c.Upstream),
		fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0", c.Namespace, c.Name))}
}

// account returns a finding about a service account that does not exist: it has no permissions to examine.
func account(f *Facts, _ Options) []cloud.Finding {
	if f.NoAccount == "" {
		return nil
	}
	fix := "set --service-account to that of the controller"
	if len(f.Controllers) > 0 && f.NoAccount != f.Controllers[0].Namespace+"/"+f.Controllers[0].Account {
		fix += ", such as " + f.Controllers[0].Namespace + "/" + f.Controllers[0].Account
	}
	return []cloud.Finding{found(CannotLook, "serviceaccount/"+f.NoAccount,
		"there is no such service account, so the permissions of the controller are not examined", fix)}
}
