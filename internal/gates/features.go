package gates

import (
	"fmt"
	"strings"
)

// Stage says what users may rely on.
type Stage string

// The stages, as Kubernetes has them.
const (
	Alpha  Stage = "alpha"  // may change or go in any release
	Beta   Stage = "beta"   // changes are announced a release before
	Stable Stage = "stable" // stays
)

// The feature gates.
const (
	CapacityBuffer          = "CapacityBuffer"
	NodeOverlay             = "NodeOverlay"
	NodeRepair              = "NodeRepair"
	ReservedCapacity        = "ReservedCapacity"
	SpotToSpotConsolidation = "SpotToSpotConsolidation"
	StaticCapacity          = "StaticCapacity"
)

// Feature is something that users switch. A feature with a Flag is switched by it, one without by the gate of its name.
type Feature struct {
	Name  string
	Stage Stage
	// Since is the version that had it first.
	Since   string
	Flag    string
	Default string
	// Does is the text of the flag, or completes "the feature ...". Page is a file of docs.
	Does, Page string
}

// Features is the only list of features: gates, the texts of flags and docs/reference/features.md follow it. Gates have
// the defaults of Karpenter (https://karpenter.sh/docs/reference/settings/#feature-gates).
var Features = []Feature{
	{Name: CapacityBuffer, Stage: Alpha, Since: "0.1", Default: "false", Page: "buffers.md",
		Does: "keeps room for the pods that CapacityBuffers describe"},
	{Name: NodeOverlay, Stage: Alpha, Since: "0.1", Default: "false", Page: "overlays.md",
		Does: "changes prices and capacities of instance types by NodeOverlays"},
	{Name: NodeRepair, Stage: Alpha, Since: "0.1", Default: "false", Page: "disruption.md", Does: "replaces unhealthy nodes"},
	{Name: ReservedCapacity, Stage: Beta, Since: "0.1", Default: "true", Page: "aws.md", Does: "uses reserved capacity"},
	{Name: SpotToSpotConsolidation, Stage: Alpha, Since: "0.1", Default: "false", Page: "disruption.md",
		Does: "lets spot nodes replace spot nodes"},
	{Name: StaticCapacity, Stage: Alpha, Since: "0.1", Default: "false", Page: "operations.md",
		Does: "maintains the number of nodes of pools with spec.replicas"},
	{Name: "SafeToEvict", Stage: Beta, Since: "0.1", Flag: "honor-safe-to-evict", Default: "false", Page: "migrating.md",
		Does: `read the Cluster Autoscaler's annotations cluster-autoscaler.kubernetes.io/safe-to-evict: "false" of a pod and ` +
			`cluster-autoscaler.kubernetes.io/scale-down-disabled: "true" of a node like karpenter.sh/do-not-disrupt: "true"`},
	{Name: "Nomination", Stage: Beta, Since: "0.1", Flag: "pod-placement", Page: "operations.md",
		Does: "nominate: tell kube-scheduler where pods were planned; observe: do not (default nominate from Kubernetes 1.35, observe before)"},
	{Name: "ProactiveScaleUp", Stage: Beta, Since: "0.1", Flag: "proactive-scale-up", Default: "true", Page: "scheduling.md",
		Does: "launch nodes for the pods that ReplicaSets, StatefulSets and Jobs ask for as soon as the first of them exists"},
	{Name: "UnreadyBrake", Stage: Alpha, Since: "0.1", Flag: "unready-brake", Default: "off", Page: "disruption.md",
		Does: "remove no node voluntarily while more than this share and this number of nodes are not ready, such as 45%,3; or off"},
}

// find returns a gate, nil if there is none of the name.
func find(gate string) *Feature {
	for i := range Features {
		if f := &Features[i]; f.Flag == "" && f.Name == gate {
			return f
		}
	}
	return nil
}

// Usage returns the text of a feature's flag. It panics for a flag that no feature has.
func Usage(flag string) string {
	for _, f := range Features {
		if f.Flag == flag {
			return f.Does
		}
	}
	panic("no feature has the flag " + flag)
}

// GatesUsage returns the text of the flag --feature-gates.
func GatesUsage() string {
	var list []string
	for _, f := range Features {
		if f.Flag == "" {
			list = append(list, fmt.Sprintf("%s (%s, %s)", f.Name, f.Stage, f.Default))
		}
	}
	return "Name=true|false, separated by commas: " + strings.Join(list, ", ")
}
