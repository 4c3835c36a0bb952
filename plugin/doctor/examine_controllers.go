package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karpenter-go/karpenter/cloud"
)

// controllers returns findings about controllers without a ready pod.
func controllers(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Controllers {
		c := &f.Controllers[i]
		if c.Ready > 0 || f.replaced(c) {
			continue
		}
		kubectl := "kubectl -n " + c.Namespace
		problem := fmt.Sprintf("%d of %d pods are ready", c.Ready, c.Wanted)
		fix := kubectl + " describe deployment " + c.Name
		switch {
		case c.Wanted == 0:
			problem, fix = "the Deployment is scaled to 0, so no controller runs", kubectl+" scale deployment "+c.Name+" --replicas=1"
		case len(c.Waiting) > 0:
			problem += ": " + few(c.Waiting)
			if name, _, found := strings.Cut(strings.TrimPrefix(c.Waiting[0], "pod "), ":"); found && strings.HasPrefix(c.Waiting[0], "pod ") {
				fix = kubectl + " describe pod " + name + "; " + kubectl + " logs " + name
				if strings.Contains(c.Waiting[0], "exit code") {
					fix += " --previous"
				}
			}
			if strings.Contains(c.Waiting[0], "Unschedulable") {
				fix = "add a node that Karpenter does not launch (a managed node group, Fargate), or change nodeSelector, affinity or requests of the pod; " + kubectl + " describe deployment " + c.Name
			}
		}
		list = append(list, found(ControllerNotReady, c.object(), problem, fix))
	}
	return list
}

// tenure is the state of a Lease.
type tenure struct {
	lease  *coordinationv1.Lease
	holder string
	// silent is the time since the last renewal, and lasts the duration of the Lease.
	silent, lasts time.Duration
}

func (t *tenure) alive() bool    { return t.holder != "" && t.silent <= t.lasts }
func (t *tenure) name() string   { return t.lease.Namespace + "/" + t.lease.Name }
func (t *tenure) object() string { return "lease/" + t.name() }

// tenures returns the Leases of the election, the most recently renewed first.
func (f *Facts) tenures() []tenure {
	var list []tenure
	for i := range f.Leases {
		t := tenure{lease: &f.Leases[i]}
		spec := &f.Leases[i].Spec
		if spec.HolderIdentity != nil {
			t.holder = *spec.HolderIdentity
		}
		if spec.RenewTime != nil && spec.LeaseDurationSeconds != nil {
			t.silent, t.lasts = f.at().Sub(spec.RenewTime.Time), time.Duration(*spec.LeaseDurationSeconds)*time.Second
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b tenure) int {
		if (a.holder != "") != (b.holder != "") {
			return map[bool]int{true: -1, false: 1}[a.holder != ""]
		}
		return int(a.silent - b.silent)
	})
	return list
}

// leader returns findings that no controller leads, or that several do. A Lease that is not held is ignored when
// another one is held.
func leader(f *Facts, _ Options) []cloud.Finding {
	if f.NoElection || len(f.Controllers) > 0 && !slices.ContainsFunc(f.Controllers, func(c Controller) bool { return c.Elects() }) ||
		slices.ContainsFunc(f.Unread, func(u Unread) bool { return strings.HasPrefix(u.What, "the Lease") }) {
		return nil
	}
	held := f.tenures()
	if len(held) == 0 {
		return []cloud.Finding{found(LeaderMissing, "lease", "no Lease exists: no controller has ever led in this cluster, or the leader election has another name or namespace",
			f.start("")+"; set --leader-election-name and --leader-election-namespace if the controller has other values")}
	}
	var alive []tenure
	for _, t := range held {
		if t.alive() {
			alive = append(alive, t)
		}
	}
	first := held[0]
	switch {
	case len(alive) > 1 && !f.ofDifferentProviders(alive):
		var names []string
		for _, t := range alive {
			names = append(names, t.name()+" by "+t.holder)
		}
		return []cloud.Finding{found(ElectionNotExclusive, alive[1].object(), fmt.Sprintf("%d Leases of the leader election are held, so as many controllers lead at the same time: %s", len(alive), strings.Join(names, ", ")),
			"remove one installation and its Lease, or set the same --leader-election-namespace for both; "+
				"controllers of different cloud providers may run at the same time")}
	case len(alive) > 0 && !f.justStopped(&first):
		return nil
	case first.holder == "":
		return []cloud.Finding{found(LeaderMissing, first.object(), "no controller holds the Lease, so no controller is active", f.start(first.lease.Namespace))}
	}
	return []cloud.Finding{found(LeaderSilent, first.object(), fmt.Sprintf("%s holds the Lease and has not renewed it for %s; its duration is %s", first.holder, first.silent.Round(time.Second), first.lasts), f.start(first.lease.Namespace))}
}

// justStopped reports whether the leader has probably stopped although its Lease is still valid: it has missed
// renewals, which are sent several times within the duration of a Lease, and the webhook that it serves does not
// respond either.
func (f *Facts) justStopped(t *tenure) bool {
	return t.silent > t.lasts/3 && slices.ContainsFunc(f.Installed, func(d apiextensionsv1.CustomResourceDefinition) bool {
		if !f.byController(d.Name) {
			return false
		}
		problem, _ := f.conversion(&d, true)
		return problem != ""
	})
}

// ofDifferentProviders reports whether the Leases are those of controllers with different providers.
func (f *Facts) ofDifferentProviders(held []tenure) bool {
	seen := map[string]bool{}
	for _, t := range held {
		at := slices.IndexFunc(f.Controllers, func(c Controller) bool { return c.Elects() && c.LeaseNamespace() == t.lease.Namespace })
		if at < 0 || f.Controllers[at].Provider() == "" || seen[f.Controllers[at].Provider()] {
			return false
		}
		seen[f.Controllers[at].Provider()] = true
	}
	return true
}

// start describes how to examine the controller that should lead in a namespace.
func (f *Facts) start(namespace string) string {
	var looks []string
	for i := range f.Controllers {
		if c := &f.Controllers[i]; namespace == "" || c.LeaseNamespace() == namespace || len(f.Controllers) == 1 {
			looks = append(looks, fmt.Sprintf("kubectl -n %[1]s get deployment %[2]s; kubectl -n %[1]s logs deployment/%[2]s", c.Namespace, c.Name))
		}
	}
	switch {
	case len(looks) > 0:
		return "examine the Deployment of the controller and its log: " + strings.Join(looks, "; ")
	case f.Hidden:
		return "examine the Deployment of the controller and its log: kubectl get deployment -A -l app.kubernetes.io/name=karpenter"
	}
	return "start the controller, because no Deployment in this cluster runs it: install the chart karpenter; " +
		"if the controller runs as a process, examine the process and its log"
}

// byController reports whether the controller converts the objects of a definition.
func (f *Facts) byController(definition string) bool {
	at := slices.IndexFunc(f.Expected, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == definition })
	if at < 0 || f.Expected[at].Spec.Conversion == nil || f.Expected[at].Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return false
	}
	at = slices.IndexFunc(f.Installed, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == definition })
	return at >= 0 && f.Installed[at].Spec.Conversion != nil && f.Installed[at].Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}
