package cloudtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/uuid"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

func testLaunch(t *testing.T, w World) {
	p := w.Provider(t)
	types := catalog(t, w, p)
	lists := requirementLists(types, p.Declared().WellKnown)
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		t.Run(name, func(t *testing.T) {
			c := claim(w.Class, lists[name]...)
			want := cheapest(t, types, c)
			machine := launch(t, p, c)
			ids = append(ids, machine.ProviderID)
			register(t, p, c, machine)
			want = w.right(t, cloud.NeedOf(c).Choices(types), want, machineOffering(machine))
			checkLabels(t, machine, c)
			checkMachine(t, p, machine, want, c)
		})
	}
	onlyMachines(t, w.Provider(t), ids...)
}

// register adds the labels that the machine of a claim gets after its launch (cloud.Registrar).
func register(t *testing.T, p cloud.Provider, c *karpv1.NodeClaim, machine *cloud.Machine) {
	t.Helper()
	registrar, registers := p.(cloud.Registrar)
	if !registers {
		return
	}
	launched := c.DeepCopy()
	launched.Labels, launched.Status.ProviderID = maps.Clone(machine.Labels), machine.ProviderID
	labels, err := registrar.Registering(t.Context(), launched)
	if err != nil {
		t.Fatalf("Registering(%s): %v", machine.ProviderID, err)
	}
	for key, value := range labels {
		if old, has := machine.Labels[key]; has && old != value {
			t.Errorf("label %s is %q at the launch and %q at the registration", key, old, value)
		}
		machine.Labels[key] = value
	}
}

// checkLabels checks every requirement of the claim against the machine's labels, operator by operator. A label that
// only the claim determines, with one value, must be set as well.
func checkLabels(t *testing.T, machine *cloud.Machine, c *karpv1.NodeClaim) {
	t.Helper()
	for _, r := range c.Spec.Requirements {
		value, present := machine.Labels[r.Key]
		allowed := cloud.AnyValue().Narrow(string(r.Operator), r.Values)
		if present && !allowed.Has(value) || !present && !allowed.HasAbsence() {
			t.Errorf("label %s is %q (present: %t), want %s %v", r.Key, value, present, r.Operator, r.Values)
		}
	}
}

func checkMachine(t *testing.T, p cloud.Provider, machine *cloud.Machine, want cloud.Choice, c *karpv1.NodeClaim) {
	t.Helper()
	if machine.ProviderID == "" || machine.Created.IsZero() || machine.Terminating {
		t.Errorf("machine %+v has no provider ID, or no creation time, or is terminating", machine)
	}
	if machine.Claim != "" && machine.Claim != c.Name {
		t.Errorf("machine is for claim %q, want %q", machine.Claim, c.Name)
	}
	if diff := cmp.Diff(want.Type.Capacity, machine.Capacity); diff != "" {
		t.Errorf("capacity (-type +machine):\n%s", diff)
	}
	if diff := cmp.Diff(want.Type.Allocatable(), machine.Allocatable); diff != "" {
		t.Errorf("allocatable (-type +machine):\n%s", diff)
	}
	read, err := p.Machine(t.Context(), machine.ProviderID)
	if err != nil {
		t.Fatalf("Machine(%s): %v", machine.ProviderID, err)
	}
	checkRead(t, machine, read)
}

// checkRead compares a machine that is read later with the result of its launch. The read machine may lack information
// that only the claim has, such as labels that only the claim determines, but it must not contradict the launch.
func checkRead(t *testing.T, machine, read *cloud.Machine) {
	t.Helper()
	for key, value := range read.Labels {
		if machine.Labels[key] != value {
			t.Errorf("label %s is read as %q, and was %q at the launch", key, value, machine.Labels[key])
		}
	}
	for key, value := range read.Annotations {
		if machine.Annotations[key] != value {
			t.Errorf("annotation %s is read as %q, and was %q at the launch", key, value, machine.Annotations[key])
		}
	}
	if got, want := machineOffering(read), machineOffering(machine); got != want {
		t.Errorf("read as %+v, launched as %+v", got, want)
	}
	if read.Claim != "" && read.Claim != machine.Claim {
		t.Errorf("read as the machine of claim %q, launched for %q", read.Claim, machine.Claim)
	}
	if apart := read.Created.Sub(machine.Created).Abs(); apart > time.Minute {
		t.Errorf("created %s, read as created %s", machine.Created, read.Created)
	}
	same := cmpopts.IgnoreFields(cloud.Machine{}, "Labels", "Annotations", "Claim", "Created")
	if diff := cmp.Diff(machine, read, same); diff != "" {
		t.Errorf("Machine (-launched +read):\n%s", diff)
	}
}

func testRequests(t *testing.T, w World) {
	p := w.Provider(t)
	types := catalog(t, w, p)
	largest := slices.MaxFunc(types, func(a, b cloud.InstanceType) int {
		return int(a.Allocatable()["cpu"] - b.Allocatable()["cpu"])
	})
	fits := claim(w.Class)
	fits.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(largest.Allocatable()["cpu"], resource.DecimalSI),
	}
	machine := launch(t, p, fits)
	if machine.Allocatable["cpu"] < largest.Allocatable()["cpu"] {
		t.Errorf("machine has %d millicores, want %d", machine.Allocatable["cpu"], largest.Allocatable()["cpu"])
	}
	tooLarge := claim(w.Class)
	tooLarge.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(largest.Allocatable()["cpu"]+1, resource.DecimalSI),
	}
	_, err := p.Launch(t.Context(), tooLarge)
	wantInsufficient(t, err)
	onlyMachines(t, p, machine.ProviderID)
}

func testLaunchTwice(t *testing.T, w World) {
	p, c := w.Provider(t), claim(w.Class)
	first := launch(t, p, c)
	if second := launch(t, p, c); second.ProviderID != first.ProviderID {
		t.Errorf("the second launch made %s, want %s again", second.ProviderID, first.ProviderID)
	}
	again := w.Provider(t)
	if third := launch(t, again, c); third.ProviderID != first.ProviderID {
		t.Errorf("the launch by a new process made %s, want %s again", third.ProviderID, first.ProviderID)
	}
	if w.SellOut != nil {
		w.SellOut(t, machineOffering(first))
	}
	if fourth := launch(t, w.Provider(t), c); !cmp.Equal(fourth.Labels, first.Labels) {
		t.Errorf("once its offering is sold out the machine changed:\n%s", cmp.Diff(first.Labels, fourth.Labels))
	}
	onlyMachines(t, again, first.ProviderID)
}

func testLaunchConcurrently(t *testing.T, w World) {
	c := claim(w.Class)
	providers := []cloud.Provider{w.Provider(t), w.Provider(t)}
	ids := make([]string, 8)
	var launches sync.WaitGroup
	for i := range ids {
		launches.Go(func() {
			machine, err := providers[i%len(providers)].Launch(t.Context(), c.DeepCopy())
			if err != nil {
				t.Errorf("Launch: %v", err)
				return
			}
			ids[i] = machine.ProviderID
		})
	}
	launches.Wait()
	if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(distinct) != 1 {
		t.Errorf("made the machines %v, want one", distinct)
	}
	onlyMachines(t, providers[0], ids[0])
}

func testLostAnswer(t *testing.T, w World) {
	p, c := w.Provider(t), claim(w.Class)
	restore := w.LoseAnswers(t)
	if machine, err := p.Launch(t.Context(), c); err == nil {
		t.Logf("the provider found out by itself that it had launched %s", machine.ProviderID)
	}
	restore()
	machine := launch(t, w.Provider(t), c)
	if again := launch(t, p, c); again.ProviderID != machine.ProviderID {
		t.Errorf("the first process launched %s, the next %s", again.ProviderID, machine.ProviderID)
	}
	onlyMachines(t, p, machine.ProviderID)
}

func testMachinePerClaim(t *testing.T, w World) {
	p := w.Provider(t)
	first, second := claim(w.Class), claim(w.Class)
	namesake := first.DeepCopy()
	namesake.UID = uuid.NewUUID()
	ids := map[string]bool{}
	for _, c := range []*karpv1.NodeClaim{first, second, namesake} {
		ids[launch(t, p, c).ProviderID] = true
	}
	if len(ids) != 3 {
		t.Errorf("three claims, two of one name, have the machines %v", ids)
	}
	onlyMachines(t, w.Provider(t), slices.Collect(maps.Keys(ids))...)
}

func testTerminate(t *testing.T, w World) {
	p := w.Provider(t)
	goes, stays := launch(t, p, claim(w.Class)), launch(t, p, claim(w.Class))
	if err := p.Terminate(t.Context(), goes.ProviderID); err != nil && !errors.Is(err, cloud.ErrNotFound) {
		t.Fatalf("Terminate: %v", err)
	}
	again := w.Provider(t) // the first call was made by a process that crashed
	eventually(t, "the machine is gone", terminated(again, goes.ProviderID))
	if _, err := p.Machine(t.Context(), goes.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("Machine of what is gone: %v, want ErrNotFound", err)
	}
	if err := p.Terminate(t.Context(), goes.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("Terminate of what is gone: %v, want ErrNotFound", err)
	}
	onlyMachines(t, p, stays.ProviderID)
}

func testNotFound(t *testing.T, w World) {
	p := w.Provider(t)
	known := launch(t, p, claim(w.Class)).ProviderID
	for _, id := range []string{known + "x", "elsewhere://machine", "", known[:len(known)-1]} {
		if _, err := p.Machine(t.Context(), id); !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("Machine(%q): %v, want ErrNotFound", id, err)
		}
		if err := p.Terminate(t.Context(), id); !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("Terminate(%q): %v, want ErrNotFound", id, err)
		}
	}
	onlyMachines(t, p, known)
}

func testSlow(t *testing.T, w World) {
	p, c := w.Provider(t), claim(w.Class)
	known := launch(t, p, claim(w.Class)).ProviderID
	restore := w.Hang(t)
	for name, call := range map[string]func(context.Context) error{
		"Launch":    func(ctx context.Context) error { _, err := p.Launch(ctx, c); return err },
		"Terminate": func(ctx context.Context) error { return p.Terminate(ctx, known) },
		"Machine":   func(ctx context.Context) error { _, err := p.Machine(ctx, known); return err },
		"Machines":  func(ctx context.Context) error { _, err := p.Machines(ctx); return err },
		"Ready":     func(ctx context.Context) error { return p.Ready(ctx, w.Class) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		answer := make(chan error, 1)
		go func() { answer <- call(ctx) }()
		select {
		case err := <-answer:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s of a cloud that does not answer: %v, want the context's error", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s does not honor its deadline", name)
		}
		cancel()
	}
	restore()
	machine := launch(t, p, c)
	onlyMachines(t, p, known, machine.ProviderID)
}
