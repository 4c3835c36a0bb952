package offline

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// surroundings are the objects that pods and nodes depend on beyond their own manifests: the objects of volumes, the
// labels of namespaces, and the objects that select pods.
type surroundings struct {
	claims     map[string]*corev1.PersistentVolumeClaim
	volumes    map[string]*corev1.PersistentVolume
	classes    []*storagev1.StorageClass
	byClass    map[string]*storagev1.StorageClass
	csiNodes   map[string]*storagev1.CSINode
	namespaces map[string]map[string]string
	services   map[string][]*corev1.Service
	selectors  map[string]*metav1.LabelSelector
	users      map[string][]*corev1.Pod
	hosts      map[string]bool
	// ranges (by namespace) and runtimes (by name) are applied to new pods by admission.
	ranges   map[string][]*corev1.LimitRange
	runtimes map[string]*nodev1.RuntimeClass
}

var (
	_ convert.Volumes   = (*surroundings)(nil)
	_ convert.Owners    = (*surroundings)(nil)
	_ convert.Admission = (*surroundings)(nil)
)

func newSurroundings() surroundings {
	return surroundings{
		claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{}, byClass: map[string]*storagev1.StorageClass{},
		csiNodes: map[string]*storagev1.CSINode{}, namespaces: map[string]map[string]string{}, services: map[string][]*corev1.Service{},
		selectors: map[string]*metav1.LabelSelector{}, users: map[string][]*corev1.Pod{}, hosts: map[string]bool{},
		ranges: map[string][]*corev1.LimitRange{}, runtimes: map[string]*nodev1.RuntimeClass{},
	}
}

// take adds an object, and reports whether it has one of these kinds.
func (s *surroundings) take(object runtime.Object) bool {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		s.claims[key(o)] = o
	case *corev1.PersistentVolume:
		s.volumes[o.Name] = o
	case *storagev1.StorageClass:
		s.classes = append(s.classes, o)
		s.byClass[o.Name] = o
	case *storagev1.CSINode:
		s.csiNodes[o.Name] = o
	case *corev1.Namespace:
		labels := map[string]string{corev1.LabelMetadataName: o.Name}
		for name, value := range o.Labels {
			labels[name] = value
		}
		s.namespaces[o.Name] = labels
	case *corev1.LimitRange:
		s.ranges[o.Namespace] = append(s.ranges[o.Namespace], o)
	case *nodev1.RuntimeClass:
		s.runtimes[o.Name] = o
	case *corev1.Service:
		s.services[o.Namespace] = append(s.services[o.Namespace], o)
	default:
		return false
	}
	return true
}

// index records which pods use which claims, and the namespaces that only pods mention.
func (s *surroundings) index(pods []sourced[*corev1.Pod]) {
	for _, p := range pods {
		if s.namespaces[p.object.Namespace] == nil {
			s.namespaces[p.object.Namespace] = map[string]string{corev1.LabelMetadataName: p.object.Namespace}
		}
		for i := range p.object.Spec.Volumes {
			if source := p.object.Spec.Volumes[i].PersistentVolumeClaim; source != nil {
				at := p.object.Namespace + "/" + source.ClaimName
				s.users[at] = append(s.users[at], p.object)
			}
		}
	}
}

// around returns the inputs of package convert.
func (s *surroundings) around(defaults []corev1.TopologySpreadConstraint) *convert.Around {
	return &convert.Around{
		Namespaces: s.namespaces, Volumes: s, DefaultSpread: convert.DefaultSpread(defaults, s),
		Admission:  s,
		Host:       func(hostname string) bool { return s.hosts[hostname] },
		Everywhere: s.everywhere,
		Users:      func(namespace, claim string) []*corev1.Pod { return s.users[namespace+"/"+claim] },
	}
}

// everywhere reports whether volumes of the CSI driver can be used on every node that runs it.
func (s *surroundings) everywhere(driver string) bool {
	some := false
	for _, node := range s.csiNodes {
		keyed, runs := convert.DriverTopology(node)[driver]
		if keyed {
			return false
		}
		some = some || runs
	}
	return some
}

// Claim implements convert.Volumes.
func (s *surroundings) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return s.claims[namespace+"/"+name]
}

// Volume implements convert.Volumes.
func (s *surroundings) Volume(name string) *corev1.PersistentVolume { return s.volumes[name] }

// Class implements convert.Volumes.
func (s *surroundings) Class(name string) *storagev1.StorageClass {
	if name == "" {
		return convert.DefaultClass(s.classes)
	}
	return s.byClass[name]
}

// Services implements convert.Owners.
func (s *surroundings) Services(namespace string) []*corev1.Service { return s.services[namespace] }

// Selector implements convert.Owners. The pods of a Deployment belong to a ReplicaSet that is not in the files; the
// owner that the file names is used instead.
func (s *surroundings) Selector(namespace string, owner metav1.OwnerReference) *metav1.LabelSelector {
	return s.selectors[ownerKey(namespace, owner.Kind, owner.Name)]
}

func ownerKey(namespace, kind, name string) string {
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}

// unbound returns the name of the pod's first claim that is not bound to a volume; "" for none.
func (s *surroundings) unbound(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		default:
			continue
		}
		if claim := s.claims[pod.Namespace+"/"+name]; claim == nil || claim.Status.Phase != corev1.ClaimBound {
			return name
		}
	}
	return ""
}

// LimitRanges implements convert.Admission.
func (s *surroundings) LimitRanges(namespace string) []*corev1.LimitRange { return s.ranges[namespace] }

// RuntimeClass implements convert.Admission.
func (s *surroundings) RuntimeClass(name string) *nodev1.RuntimeClass { return s.runtimes[name] }
