package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Codes of findings. docs/doctor.md lists them; a test compares.
const (
	CannotLook           = "CannotLook"           // the doctor may not read something
	KubernetesUntried    = "KubernetesUntried"    // the API server is of a version that is not tested
	PermissionMissing    = "PermissionMissing"    // the controller may not do something that it has to
	DefinitionMissing    = "DefinitionMissing"    // a CRD is not installed
	DefinitionDiffers    = "DefinitionDiffers"    // a CRD is of another version
	ConversionBroken     = "ConversionBroken"     // a CRD is converted by a webhook that is not there
	PoolNotReady         = "PoolNotReady"         // nothing is bought from a pool
	OtherProvider        = "OtherProvider"        // no controller of a pool's provider runs
	ClassMissing         = "ClassMissing"         // the node class of a pool does not exist
	ClassNotReady        = "ClassNotReady"        // a node class cannot be used
	ClockSkew            = "ClockSkew"            // the clocks differ
	ControllerNotReady   = "ControllerNotReady"   // no pod of a Deployment that runs the controller is ready
	LeaderMissing        = "LeaderMissing"        // no controller leads
	LeaderSilent         = "LeaderSilent"         // the leader does not renew its Lease
	ClaimNotLaunched     = "ClaimNotLaunched"     // no machine for a claim
	ClaimNotRegistered   = "ClaimNotRegistered"   // a machine has not become a node
	ClaimNotInitialized  = "ClaimNotInitialized"  // a node is not ready for pods
	ClaimNotTerminated   = "ClaimNotTerminated"   // a claim does not go
	ClaimMismatched      = "ClaimMismatched"      // a claim names another machine than that of its node
	FinalizerOrphaned    = "FinalizerOrphaned"    // a node keeps our finaliser, and no claim stands behind it
	OlderNotReleased     = "OlderNotReleased"     // a Provisioner or AWSNodeTemplate was deleted, and no controller lets go of it
	OlderNotReady        = "OlderNotReady"        // a Provisioner or AWSNodeTemplate has not become what it should
	DrainBlocked         = "DrainBlocked"         // a PodDisruptionBudget keeps a drain from ending
	SchedulerFails       = "SchedulerFails"       // kube-scheduler cannot say where pods fit
	WebhookBroken        = "WebhookBroken"        // an admission webhook would refuse what the controller writes
	ElectionNotExclusive = "ElectionNotExclusive" // several Leases of the name are held
	StaticCapacityOff    = "StaticCapacityOff"    // a pool with replicas, and a controller that keeps none
	PolicyOutdated       = "PolicyOutdated"       // the IAM policy is one of Karpenter 0.x
	ReplacementsFail     = "ReplacementsFail"     // the nodes of a pool are not replaced for a while
	RemovalsPaused       = "RemovalsPaused"       // the brake on involuntary removals holds
	LaunchesPaused       = "LaunchesPaused"       // the brake on launches without effect holds
)

// check looks at one kind of trouble.
type check func(*Facts, Options) []cloud.Finding

var checks = []check{unread, kubernetes, permissions, definitions, conversions, pools, standing, pauses, classes, clock, controllers, leader, claims, mismatched, finalizers, older, unmade, drains, scheduler, webhooks}

// Examine tells what is wrong, by code, then object. Arrange has the order of a report.
func Examine(f *Facts, o Options) []cloud.Finding {
	findings := []cloud.Finding{}
	for _, look := range checks {
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

func unread(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for _, u := range f.Unread {
		fix := "run the doctor as somebody who may read that: a cluster administrator, or the controller's service account for what is its own"
		if errors.Is(u.Why, errNowhere) {
			fix = "name it by --service-account or --leader-election-namespace"
		}
		list = append(list, found(CannotLook, u.What, "cannot be looked at: "+u.Why.Error(), fix))
	}
	return list
}

// permissions are told per right, with all verbs that are missing.
func permissions(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
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
		object := d.Resource
		if d.Group != "" {
			object += "." + d.Group
		}
		where := "in the whole cluster"
		if d.Namespace != "" {
			where = "in namespace " + d.Namespace
		}
		list = append(list, found(PermissionMissing, object, fmt.Sprintf("the controller may not %s %s %s (for: %s) %s", strings.Join(verbs, ", "), object, where, d.For, d.Why),
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
	return []cloud.Finding{found(ClockSkew, "clock", fmt.Sprintf("the clock here and that of the API server differ by %s", skew.Round(time.Second)),
		"synchronise the clocks of this machine and of the control plane (chrony, NTP): leases, budgets and expiry go by them")}
}
