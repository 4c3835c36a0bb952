package podusage

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Usage is what pods use, by NAMESPACE/NAME.
type Usage map[string]*PodMetrics

// Add adds what a pod uses.
func (u Usage) Add(m *PodMetrics) { u[m.Namespace+"/"+m.Name] = m }

// Of returns what a pod uses: CPU in millicores, memory in bytes, both rounded up. It returns false if that is not known.
func (u Usage) Of(namespace, name string) (cpu, memory int64, known bool) {
	m := u[namespace+"/"+name]
	if m == nil || len(m.Containers) == 0 {
		return 0, 0, false
	}
	for i := range m.Containers {
		cpu += millicores(m.Containers[i].Usage)
		memory += bytesOf(m.Containers[i].Usage)
	}
	return cpu, memory, true
}

// mostUsed is the largest amount that counts: millicores, or bytes. A hundred times as much does not overflow.
const mostUsed = 1 << 55

func millicores(list corev1.ResourceList) int64 {
	q := list[corev1.ResourceCPU]
	if q.Value() > mostUsed/1000 {
		return mostUsed
	}
	return max(0, q.MilliValue())
}

func bytesOf(list corev1.ResourceList) int64 {
	q := list[corev1.ResourceMemory]
	return min(max(0, q.Value()), mostUsed)
}

// The requests of a container that fits its usage: Percent of the largest usage of a container of its name among the pods
// of the workload, and at least the amounts.
const (
	Percent     = 120
	leastCPU    = 10       // millicores
	leastMemory = 32 << 20 // bytes
)

// requests are those of a container.
type requests struct{ cpu, memory int64 }

// fitting returns the requests that fit an amount of usage.
func fitting(used requests) requests {
	up := func(n int64) int64 { return n + (n*(Percent-100)+99)/100 }
	return requests{max(up(used.cpu), leastCPU), max(up(used.memory), leastMemory)}
}

// RightSize returns the pods with the requests of CPU and memory that fit the usage of their workload, which workload
// names; a pod for which it returns "" is left as it is. Pods of workloads without any known usage are left as they are,
// and so are containers of which none is known. changed is the number of pods with other requests. The given pods do not
// change.
func (u Usage) RightSize(pods []*corev1.Pod, workload func(*corev1.Pod) string) (sized []*corev1.Pod, changed int) {
	most := map[[2]string]requests{}
	for _, p := range pods {
		m := u[p.Namespace+"/"+p.Name]
		if of := workload(p); m != nil && of != "" {
			for _, c := range m.Containers {
				at := [2]string{of, c.Name}
				most[at] = requests{max(most[at].cpu, millicores(c.Usage)), max(most[at].memory, bytesOf(c.Usage))}
			}
		}
	}
	sized = make([]*corev1.Pod, len(pods))
	for i, p := range pods {
		sized[i] = p
		of := workload(p)
		if of == "" {
			continue
		}
		fit := func(c *corev1.Container) (requests, bool) {
			used, known := most[[2]string{of, c.Name}]
			return fitting(used), known
		}
		if resized := rightSize(p, fit); resized != nil {
			sized[i] = resized
			changed++
		}
	}
	return sized, changed
}

// rightSize returns a copy of the pod with the requests, or nil if none is known for its containers.
func rightSize(p *corev1.Pod, fit func(*corev1.Container) (requests, bool)) *corev1.Pod {
	c := p.DeepCopy()
	found := false
	for _, list := range [][]corev1.Container{c.Spec.Containers, c.Spec.InitContainers} {
		for i := range list {
			of := &list[i]
			if want, known := fit(of); known {
				set(of, want)
				found = true
			}
		}
	}
	if !found {
		return nil
	}
	// What is in effect after a resize in place, and requests of the whole pod, would take the place of these.
	c.ManagedFields, c.Spec.Resources, c.Status.Resources, c.Status.AllocatedResources = nil, nil, nil, nil
	for _, list := range [][]corev1.ContainerStatus{c.Status.ContainerStatuses, c.Status.InitContainerStatuses} {
		for i := range list {
			list[i].Resources, list[i].AllocatedResources = nil, nil
		}
	}
	return c
}

// set sets requests of CPU and memory. Limits of both are dropped: a request must not exceed them, and they do not matter
// to where a pod fits.
func set(c *corev1.Container, want requests) {
	if c.Resources.Requests == nil {
		c.Resources.Requests = corev1.ResourceList{}
	}
	c.Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(want.cpu, resource.DecimalSI)
	c.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(want.memory, resource.BinarySI)
	delete(c.Resources.Limits, corev1.ResourceCPU)
	delete(c.Resources.Limits, corev1.ResourceMemory)
}
