package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/plugin/viewer"
)

// These are the codes of findings. docs/doctor.md lists them; a test compares.
const (
	CannotLook           = "CannotLook"           // the doctor lacks permission to read something
	KubernetesUntried    = "KubernetesUntried"    // the API server has a version that is not tested
	PermissionMissing    = "PermissionMissing"    // the controller lacks a permission that it needs
	DefinitionMissing    = "DefinitionMissing"    // a CRD is not installed
	DefinitionDiffers    = "DefinitionDiffers"    // a CRD differs from the expected version
	ConversionBroken     = "ConversionBroken"     // the conversion webhook of a CRD does not respond
	PoolNotReady         = "PoolNotReady"         // no node can be launched from a pool
	OtherProvider        = "OtherProvider"        // no controller of a pool's provider runs
	UpstreamRuns         = "UpstreamRuns"         // the Karpenter of kubernetes-sigs runs
	PoolAtLimit          = "PoolAtLimit"          // pods are unschedulable, and a pool is at its limit
	PoolMissing          = "PoolMissing"          // the pool of claims does not exist
	BudgetUnreadable     = "BudgetUnreadable"     // a budget of a pool cannot be read
	ClassMissing         = "ClassMissing"         // the node class of a pool does not exist
	ClassNotReady        = "ClassNotReady"        // a node class cannot be used
	ClockSkew            = "ClockSkew"            // the clocks differ
	ControllerNotReady   = "ControllerNotReady"   // a Deployment of the controller has no ready pod
	LeaderMissing        = "LeaderMissing"        // no controller leads
	LeaderSilent         = "LeaderSilent"         // the leader does not renew its Lease
	ClaimNotLaunched     = "ClaimNotLaunched"     // a claim has no machine
	ClaimNotRegistered   = "ClaimNotRegistered"   // a machine has not registered as a node
	ClaimNotInitialized  = "ClaimNotInitialized"  // a node is not ready for pods
	ClaimNotTerminated   = "ClaimNotTerminated"   // the deletion of a claim takes too long
	ClaimMismatched      = "ClaimMismatched"      // a claim names a machine that is not that of its node
	FinalizerOrphaned    = "FinalizerOrphaned"    // a node has the termination finalizer, and no claim
	OlderNotReleased     = "OlderNotReleased"     // a Provisioner or AWSNodeTemplate was deleted, and no controller releases it
	OlderNotReady        = "OlderNotReady"        // a Provisioner or AWSNodeTemplate was not converted
	DrainBlocked         = "DrainBlocked"         // a PodDisruptionBudget blocks a drain
	SchedulerFails       = "SchedulerFails"       // kube-scheduler fails to schedule pods because of an error
	WebhookBroken        = "WebhookBroken"        // an admission webhook would reject the controller's writes
	ElectionNotExclusive = "ElectionNotExclusive" // several Leases of the name are held
	StaticCapacityOff    = "StaticCapacityOff"    // a pool has replicas, and its controller does not maintain them
	GateOff              = "GateOff"              // objects exist that no controller reads, because a feature gate is off
	BufferNotReady       = "BufferNotReady"       // a CapacityBuffer asks for what no node can have, or for pods of an unknown shape
	QuotaWithoutEffect   = "QuotaWithoutEffect"   // a CapacityQuota is invalid, or selects no node and no pool
	QuotaExceeded        = "QuotaExceeded"        // nodes use more than a CapacityQuota allows
	PolicyOutdated       = "PolicyOutdated"       // the IAM policy is one of Karpenter 0.x
	QueueNotSet          = "QueueNotSet"          // pools ask for what only a queue of interruptions tells
	RemovalsPaused       = "RemovalsPaused"       // the limit on involuntary removals is reached
	Paused               = "Paused"               // something is not tried for now, because it failed repeatedly
)

// check evaluates one kind of problem.
type check func(*Facts, Options) []cloud.Finding

var checks = []check{unread, account, upstream, kubernetes, permissions, definitions, conversions, pools, limits, orphans, budgets,
	standing, gated, queueless, rooms, quotas, pauses, classes, clock, controllers, leader, claims, mismatched, finalizers, older, unconverted,
	drains, scheduler, webhooks}

// Examine returns the problems, ordered by code and object. Arrange produces the order of a report.
func Examine(f *Facts, o Options) []cloud.Finding {
	findings, looks := []cloud.Finding{}, checks
	if object, _ := f.ofUpstream(); object != "" {
		looks = upstreamChecks
	}
	for _, look := range looks {
		findings = append(findings, look(f, o)...)
	}
	slices.SortStableFunc(findings, func(a, b cloud.Finding) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Object, b.Object))
	})
	return findings
}

func found(code, object, problem, fix string) cloud.Finding {
	return cloud.Finding{Code: code, Object: object, Problem: strings.Join(strings.Fields(problem), " "), Fix: fix}
}

// unread returns one finding for all kinds that the user may not list, and one for each other failure.
func unread(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	var kinds []string
	var by string
	for _, u := range f.Unread {
		if user, denied := viewer.Denied(u.Why); denied {
			if kind := strings.TrimPrefix(u.What, kindsUnread); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
			by = user
			continue
		}
		fix := "run the doctor as a user with this permission: a cluster administrator, or the service account of the controller for its own objects"
		if errors.Is(u.Why, errNowhere) {
			fix = "set --service-account or --leader-election-namespace"
		}
		list = append(list, found(CannotLook, u.What, "cannot be read: "+u.Why.Error(), fix))
	}
	if len(kinds) > 0 {
		list = append(list, found(CannotLook, strings.Join(kinds, ","),
			"cannot be read: "+viewer.Subject(by)+" may not list these kinds in the whole cluster; checks that depend on them are skipped", viewer.Grant(by)))
	}
	return list
}

// permissions returns one finding per right, with all missing verbs and all names of objects.
func permissions(f *Facts, _ Options) []cloud.Finding {
	type missing struct{ object, verbs, where, purpose, why string }
	var all []missing
	names := map[missing][]string{}
	for i, d := range f.Denied {
		if i > 0 && sameRight(f.Denied[i-1].Right, d.Right) {
			continue
		}
		var verbs []string
		for _, other := range f.Denied[i:] {
			if sameRight(other.Right, d.Right) {
				verbs = append(verbs, other.Verb)
			}
		}
		m := missing{d.Resource, strings.Join(verbs, ", "), "in the whole cluster", d.For, d.Why}
		if d.Group != "" {
			m.object += "." + d.Group
		}
		if d.Namespace != "" {
			m.where = "in namespace " + d.Namespace
		}
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
		names[m] = append(names[m], d.Name)
	}
	var list []cloud.Finding
	for _, m := range all {
		list = append(list, found(PermissionMissing, m.object, fmt.Sprintf("the controller may not %s %s %s %s (for: %s) %s", m.verbs, m.object,
			strings.Join(names[m], ", "), m.where, m.purpose, m.why),
			"apply the roles of the chart again, or add the verbs to the role of the controller's service account"))
	}
	return list
}

func sameRight(a, b Right) bool {
	return a.Group == b.Group && a.Resource == b.Resource && a.Namespace == b.Namespace && a.Name == b.Name && a.For == b.For
}

func clock(f *Facts, o Options) []cloud.Finding {
	if f.ServerTime.IsZero() {
		return nil
	}
	skew := f.Now.Sub(f.ServerTime)
	if skew.Abs() <= o.Skew {
		return nil
	}
	return []cloud.Finding{found(ClockSkew, "clock", fmt.Sprintf("the local clock and the clock of the API server differ by %s", skew.Round(time.Second)),
		"synchronize the clocks of this machine and of the control plane (chrony, NTP); leases, budgets and expiry depend on them")}
}
