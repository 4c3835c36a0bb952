package world

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/controller/buffer"
)

// Pods that do not exist: those of CapacityBuffers, and those that ReplicaSets ask for and have not created yet.

// wireBuffers returns the loop of the controller of buffers.
func wireBuffers(w *World, p *process) task {
	r := buffer.NewReconciler()
	r.Client, r.Live, r.Store, r.Destination = p.api, p.api.live(), p.store, p.provision.Destination
	r.Metrics, r.Clock, r.Log = metrics(), w.read, logr.Discard()
	p.provision.Report.Room = func(rooms map[string]*room.Room, at time.Time) {
		if r.SetRoom(rooms, at); len(rooms) > 0 {
			p.buffersChanged()
		}
	}
	return &beat{clock: w.Clock, changed: []source{{ch: p.buffered}}, idle: 200 * time.Millisecond, longest: time.Second,
		pause: func() time.Duration { return 10 * time.Second },
		pass:  func(ctx context.Context) { _ = r.Reconcile(ctx) }} // the next pass tries again
}

// buffersChanged starts a pass of the controller of buffers.
func (p *process) buffersChanged() {
	select {
	case p.buffered <- struct{}{}:
	default:
	}
}

// bufferOf returns a buffer of pods, and the object that it refers to.
func bufferOf(name string, milli int64, replicas int32) []client.Object {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(milli<<20, resource.BinarySI)}
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	template.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "pause", Resources: corev1.ResourceRequirements{Requests: requests}}}
	b := &autoscalingv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec.PodTemplateRef, b.Spec.Replicas = &autoscalingv1beta1.LocalObjectRef{Name: name}, &replicas
	return []client.Object{template, b}
}

// buffersHold returns an error if a buffer lacks room on the nodes, unless limits or quotas may be the cause.
func (p *play) buffersHold() error {
	if p.has(Limits) || p.has(Quotas) {
		return nil
	}
	for _, b := range listOf[*autoscalingv1beta1.CapacityBuffer](p.api) {
		template := p.api.get(&corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Spec.PodTemplateRef.Name}})
		pod := &placed{Pod: &corev1.Pod{Spec: template.(*corev1.PodTemplate).Template.Spec}}
		pod.requests = requestsOf(pod.Pod)
		n := 0
		for _, h := range p.kube.sorted() {
			n += h.spare(pod)
		}
		if n < int(*b.Spec.Replicas) {
			return fmt.Errorf("buffers hold: nodes have room for %d pods of %s, which wants %d", n, b.Name, *b.Spec.Replicas)
		}
	}
	return nil
}

// spare returns how many pods like that the node can take.
func (h *host) spare(pod *placed) int {
	if !h.takes(pod, nil) {
		return 0
	}
	least := int64(1 << 20)
	for name, amount := range pod.requests {
		if amount > 0 {
			least = min(least, (h.room[name]-h.used[name])/amount)
		}
	}
	return int(least)
}

// replicaSetOf returns the ReplicaSet that controls pods like the template, without any.
func replicaSetOf(template *corev1.Pod) *appsv1.ReplicaSet {
	o := template.OwnerReferences[0]
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: o.Name, UID: o.UID}}
	set.Spec.Replicas = new(int32)
	return set
}

// ask changes the number of pods that a ReplicaSet asks for. It returns false if there is no such object.
func (w *World) ask(template *corev1.Pod, replicas int) bool {
	set, is := w.api.get(replicaSetOf(template)).(*appsv1.ReplicaSet)
	if is {
		edit(w.api, set, func(o *appsv1.ReplicaSet) { o.Spec.Replicas = new(int32(replicas)) })
	}
	return is
}
