package model

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Selector selects pods by namespace and labels.
type Selector struct {
	// Namespaces that it selects from, sorted; ignored when AllNamespaces.
	Namespaces    []string
	AllNamespaces bool
	// Requirements on the pods' labels: In, NotIn, Exists, DoesNotExist. An empty list selects every pod.
	Requirements []label.Requirement
	// Nothing selects no pod (a null selector in the API).
	Nothing bool
}

// Selects reports whether the selector selects a pod.
func (s *Selector) Selects(namespace string, labels map[string]string) bool {
	if !s.looksInto(namespace) {
		return false
	}
	for i := range s.Requirements {
		if !requires(&s.Requirements[i], labels) {
			return false
		}
	}
	return true
}

// Spread is a topology spread constraint (Kubernetes API, TopologySpreadConstraint). Its matchLabelKeys are part of
// the Selector.
type Spread struct {
	Key     string
	MaxSkew int
	// MinDomains is 0 if it is not set.
	MinDomains int
	// Soft is whenUnsatisfiable: ScheduleAnyway.
	Soft bool
	// IgnoreAffinity is nodeAffinityPolicy: Ignore; HonorTaints is nodeTaintsPolicy: Honor.
	IgnoreAffinity bool
	HonorTaints    bool
	Selector       Selector
}

// Term is a pod affinity or anti-affinity term.
type Term struct {
	Key      string
	Anti     bool
	Selector Selector
	// Weight is 1 to 100 for a preferred term, 0 for a required one.
	Weight int
	// Together terms represent a volume that the selected pods share and that is provisioned in the zone of the first
	// of them (see Volume.Waits). Such a term is evaluated separately from the pod's own affinity.
	Together bool
}

// Required reports whether the term must hold.
func (t *Term) Required() bool { return t.Weight == 0 }

// Preference is a preferred node affinity term.
type Preference struct {
	Weight       int
	Requirements []label.Requirement
}

// HostPort is a port that the pod uses on its node. An empty IP and 0.0.0.0 mean every address; "::" is an ordinary
// address, as in kube-scheduler (HostPortInfo).
type HostPort struct {
	IP       string
	Protocol string
	Port     int32
}

// Conflicts reports whether the two ports cannot be on one node.
func (p HostPort) Conflicts(q HostPort) bool {
	return p.Port == q.Port && p.Protocol == q.Protocol && (p.IP == q.IP || wild(p.IP) || wild(q.IP))
}

func wild(ip string) bool { return ip == "" || ip == "0.0.0.0" }

// Volume is a persistent volume that a pod uses.
type Volume struct {
	// Claim is namespace/name of the claim.
	Claim string
	// Driver is the CSI driver that attaches it; empty if none does.
	Driver string
	// Shared volumes are used by other pods too, as far as is known. Volumes that are not shared count per pod,
	// shared ones once per node.
	Shared bool
	// Exclusive volumes may be used by only one pod at a time (access mode ReadWriteOncePod).
	Exclusive bool
	// Waits: the volume is not provisioned yet. It is created where the first of the pods that share it is scheduled
	// (volumeBindingMode WaitForFirstConsumer), and then restricts the others to that zone.
	Waits bool
}

// volumeResource is the prefix of the names under which the volumes of a driver are counted like any other resource.
// A node or type without a limit holds any number.
const volumeResource = "attachable-volumes-csi-"

// VolumeResource returns the resource that counts the volumes of a CSI driver.
func VolumeResource(driver string) string { return volumeResource + driver }

// IsVolumeResource reports whether the resource counts volumes.
func IsVolumeResource(name string) bool { return strings.HasPrefix(name, volumeResource) }

// unlimited is the amount of a resource without a limit. It is small enough that sums do not overflow.
const unlimited = 1 << 52

// Mark defines which pods are counted in topology domains: the pods that a selector selects, or, for a Carrier, the
// pods that carry a required anti-affinity term on Key with the selector.
type Mark struct {
	Selector Selector
	Carrier  bool
	Key      string
	// Live excludes terminating pods, as topology spread does; affinity counts them until they are gone.
	Live bool
	// Virtual marks come from the constraints of virtual pods. They count all pods, but do not constrain or distinguish
	// pods that exist: kube-scheduler knows no virtual pods.
	Virtual bool
}

// MarkCount is the number of pods of a node that have a mark.
type MarkCount struct {
	Mark  int
	Count int
}

// amountsWithVolumes adds the pod's own volumes to its requests.
func amountsWithVolumes(p *PodSpec) []quantity.Amount {
	if len(p.Volumes) == 0 {
		return p.Requests
	}
	own := map[string]int64{}
	for _, v := range p.Volumes {
		if v.Driver != "" && !v.Shared {
			own[VolumeResource(v.Driver)]++
		}
	}
	amounts := slices.Clone(p.Requests)
	for name, n := range own {
		amounts = append(amounts, quantity.Amount{Name: name, Value: n})
	}
	return amounts
}
