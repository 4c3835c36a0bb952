package aws

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
)

// Two pools use one class. One of them has its own kubelet settings, converted from v1beta1.
func TestKubeletOfAPool(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	pool := poolOf("default")
	pods := func(annotations map[string]string) int64 {
		t.Helper()
		pool.Annotations = annotations
		types, err := p.Catalog(t.Context(), pool)
		check(t, err)
		if len(types) != 1 {
			t.Fatalf("%d types", len(types))
		}
		return types[0].Capacity["pods"]
	}
	plain := pods(nil)
	if got := pods(map[string]string{karpv1.AnnotationKubelet: `{"maxPods":7}`}); got != 7 {
		t.Errorf("%d pods with maxPods 7", got)
	}
	if got := pods(map[string]string{karpv1.AnnotationKubelet: `{"maxPods":8}`}); got != 8 {
		t.Errorf("%d pods with maxPods 8", got)
	}
	if got := pods(nil); got != plain || plain == 7 {
		t.Errorf("%d pods without the annotation, %d before", got, plain)
	}
	for text, want := range map[string]string{
		`[]`: "want a JSON object", `{`: "reading the annotation", `{"clusterDNS":["a"]}`: "is not an IP address",
	} {
		pool.Annotations = map[string]string{karpv1.AnnotationKubelet: text}
		if _, err := p.Catalog(t.Context(), pool); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", text, err, want)
		}
	}
}

// The claim has the settings of its pool, and its machine is launched with them.
func TestKubeletOfAClaim(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	claim := w.claim(t, "old")
	claim.Annotations = map[string]string{karpv1.AnnotationKubelet: `{"maxPods":7}`}
	check(t, w.api.Update(t.Context(), claim))
	machine, err := p.Launch(t.Context(), claim)
	check(t, err)
	if machine.Capacity["pods"] != 7 {
		t.Errorf("%d pods, want 7", machine.Capacity["pods"])
	}
}

// settle reconciles a class until it is ready.
func (w *world) settle(t *testing.T, p *Provider, name string) {
	t.Helper()
	r := &class.Reconciler{Client: w.api, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: time.Now}
	for range 2 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		check(t, err)
	}
}

const seven = `{"maxPods":7,"kubeReserved":{"cpu":"100m"}}`

// settings returns the kubelet settings of a class with the given number of pods.
func settings(pods int) *awsv1.KubeletConfiguration {
	return &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromInt(pods)), KubeReserved: map[string]string{"cpu": "100m"}}
}

// moves are places to which the kubelet settings of a machine that was launched with maxPods 7 may have moved, and the
// expected drift.
var moves = []struct {
	name  string
	class string                      // the pool's class
	noted string                      // the pool's annotation
	own   *awsv1.KubeletConfiguration // the class that the machine was launched with
	want  string
	fails string
}{
	{name: "as it was", class: "default", noted: seven},
	{name: "written in another way", class: "default", noted: `{"kubeReserved": {"cpu": "100m"}, "maxPods": 7}`},
	{name: "moved to the class", class: "default", own: settings(7)},
	{name: "in both places", class: "default", noted: seven, own: settings(7)},
	{name: "the class has others, which do not count", class: "default", noted: seven, own: settings(8)},
	{name: "a copy of the class has them", class: "copy"},
	{name: "a copy has others, which do not count", class: "copy-of-eight", noted: seven},
	{name: "a copy that was not examined", class: "unseen", fails: "unseen"},
	{name: "a copy that is not there", class: "missing", fails: "not found"},
	{name: "cannot be read", class: "default", noted: "[]", fails: "want a JSON object"},
	{name: "taken away", class: "default", want: awsv1.ReasonNodeClassDrift},
	{name: "others in the annotation", class: "default", noted: `{"maxPods":8}`, want: awsv1.ReasonNodeClassDrift},
	{name: "others in the class", class: "default", own: settings(8), want: awsv1.ReasonNodeClassDrift},
	{name: "others in a copy", class: "copy-of-eight", want: awsv1.ReasonNodeClassDrift},
	{name: "a copy that differs otherwise", class: "copy-with-tags", want: awsv1.ReasonNodeClassDrift},
}

// copies creates the classes that moves refer to, and reconciles all but the one that must stay unreconciled.
func (w *world) copies(t *testing.T, p *Provider) {
	t.Helper()
	for copied, change := range map[string]func(*awsv1.EC2NodeClass){
		"copy":           func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = settings(7) },
		"copy-of-eight":  func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = settings(8) },
		"copy-with-tags": func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet, c.Spec.Tags = settings(7), map[string]string{"team": "a"} },
		"unseen":         func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = settings(7) },
	} {
		class := testClass(copied)
		change(class)
		check(t, w.api.Create(t.Context(), class))
		if copied != "unseen" {
			w.settle(t, p, copied)
		}
	}
}

// The settings that a machine was launched with may be in the pool or in a class of any name. The machine has drifted
// if the settings differ, not if they have moved.
func TestKubeletThatMoves(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	made := w.claim(t, "old")
	made.Annotations = map[string]string{karpv1.AnnotationKubelet: seven}
	check(t, w.api.Update(t.Context(), made))
	machine, err := p.Launch(t.Context(), made)
	check(t, err)
	maps.Copy(made.Annotations, machine.Annotations)
	maps.Copy(made.Labels, machine.Labels)
	made.Status.ProviderID, made.Status.ImageID = machine.ProviderID, machine.ImageID
	w.copies(t, p)
	for _, test := range moves {
		t.Run(test.name, func(t *testing.T) {
			w.changed(t, func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = test.own })
			pool := poolOf(test.class)
			if test.noted != "" {
				pool.Annotations = map[string]string{karpv1.AnnotationKubelet: test.noted}
			}
			reason, err := p.Drifted(t.Context(), made, pool)
			switch {
			case reason != test.want:
				t.Errorf("reason is %v, want %v", reason, test.want)
			case (err != nil) != (test.fails != ""):
				t.Errorf("(err != nil) is %v, want %v, %v, and an error about %q", (err != nil), (test.fails != ""), err, test.fails)
			case err != nil && !strings.Contains(err.Error(), test.fails):
				t.Errorf("err != nil && !strings.Contains(err.Error(), test.fails), %v, and an error about %q", err, test.fails)
			}
		})
	}

	check(t, w.api.Delete(t.Context(), w.class(t, "default"))) // its finalizer keeps the object
	if reason, err := p.Drifted(t.Context(), made, poolOf("copy")); reason != awsv1.ReasonNodeClassDrift || err != nil {
		t.Errorf("the class that the machine was launched with waits for its removal: %q, %v; want %q", reason, err, awsv1.ReasonNodeClassDrift)
	}
}

// After adoption, a machine of upstream Karpenter has the settings of its pool, wherever they are.
func TestKubeletOfKarpentersPool(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	id, image := w.theirInstance(t)
	claim := w.theirClaim(t, "pool-x7k2p", id, image)
	pool := poolOf("default")
	pool.Annotations = map[string]string{karpv1.AnnotationKubelet: `{"maxPods":7}`}
	check(t, w.api.Create(t.Context(), pool))
	w.hashedByKarpenter(t, p)
	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	drifted := func(when, want string) {
		t.Helper()
		if reason, err := p.Drifted(t.Context(), claim, pool); reason != want || err != nil {
			t.Errorf("%s: drifted: %q, %v, want %q", when, reason, err, want)
		}
	}
	drifted("taken over", "")
	w.changed(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromInt(7))}
	})
	drifted("in both places", "")
	pool.Annotations = nil
	drifted("moved to the class", "")
	w.changed(t, func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = nil })
	drifted("taken away", awsv1.ReasonNodeClassDrift)
}
