package doctor

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karpenter-go/karpenter/cloud"
)

// upstreamChecks are those that also hold for upstream's Karpenter. The others compare the cluster with what this
// project's controller needs; their fixes would replace CRDs and permissions of a controller that works.
var upstreamChecks = []check{unread, account, upstream, pools, limits, orphans, budgets, classes, clock, controllers,
	claims, finalizers, drains, scheduler, webhooks}

// ofUpstream returns the object that shows that the cluster belongs to upstream's Karpenter, and how, "" if it does not:
// its image runs and no other controller, or no controller is visible and the CRDs do not serve v1beta1, which those of
// this project do and those of upstream do not (https://karpenter.sh/docs/upgrading/upgrade-guide/, 1.1.0). Deployments
// without replicas run nothing: so a migration leaves the old one.
func (f *Facts) ofUpstream() (object, how string) {
	if slices.ContainsFunc(f.Controllers, func(c Controller) bool { return c.Upstream == "" && c.Wanted > 0 }) {
		return "", ""
	}
	if c := f.upstreamRuns(); c != nil {
		return c.object(), "the cluster is run by another Karpenter than that of this project: it runs the image " + c.Upstream
	}
	const name = "nodepools.karpenter.sh"
	at := slices.IndexFunc(f.Installed, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name })
	if at < 0 || slices.ContainsFunc(f.Controllers, func(c Controller) bool { return c.Upstream == "" }) ||
		slices.ContainsFunc(f.Installed[at].Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1beta1" }) {
		return "", ""
	}
	return "customresourcedefinition/" + name,
		"the cluster has the CRDs of another Karpenter than that of this project, and no running controller is visible"
}

// upstreamRuns returns a Deployment with replicas that runs the image of upstream's Karpenter, nil for none.
func (f *Facts) upstreamRuns() *Controller {
	at := slices.IndexFunc(f.Controllers, func(c Controller) bool { return c.Upstream != "" && c.Wanted > 0 })
	if at < 0 {
		return nil
	}
	return &f.Controllers[at]
}

// upstream returns one finding about upstream's Karpenter: alone, or beside the controller of this project.
func upstream(f *Facts, _ Options) []cloud.Finding {
	if object, how := f.ofUpstream(); object != "" {
		return []cloud.Finding{found(UpstreamRuns, object, how+"; CRDs, permissions and leader election are not examined",
			"nothing for that Karpenter; docs/migrating.md of this project describes how to replace it")}
	}
	c := f.upstreamRuns()
	if c == nil {
		return nil
	}
	return []cloud.Finding{found(UpstreamRuns, c.object(),
		fmt.Sprintf("it runs the image %s beside the controller of this project: both act on the same NodePools", c.Upstream),
		fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0", c.Namespace, c.Name))}
}

// replaced reports whether the Deployment is scaled to 0 while upstream's Karpenter runs instead of that of this project,
// or the reverse.
func (f *Facts) replaced(c *Controller) bool {
	return c.Wanted == 0 && slices.ContainsFunc(f.Controllers, func(other Controller) bool {
		return other.Wanted > 0 && (other.Upstream == "") != (c.Upstream == "")
	})
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
