package aws

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// shifting returns a provider that follows zonal shifts, as a leader, and what it has announced.
func (w *world) shifting(t *testing.T, change ...func(*Options)) (p *Provider, told *[]string) {
	told = &[]string{}
	p = w.provider(t, append(change, func(o *Options) {
		o.ZonalShift = true
		o.Observer.Event = func(object client.Object, e interruption.Event) {
			*told = append(*told, fmt.Sprintf("%s %s warning=%t: %s", object.GetName(), e.Reason, e.Warning, e.Message))
		}
		o.Observer.Shifted = func(zones []ZoneShift) {
			for _, z := range zones {
				*told = append(*told, fmt.Sprintf("metric %s %t", z.ZoneID, z.Since > 0))
			}
		}
	})...)
	return p, told
}

// avoidedZones returns the zones of the class with shifted offerings. All offerings of a zone must be alike.
func (w *world) avoidedZones(t *testing.T, p *Provider) []string {
	t.Helper()
	offered, err := p.typesOf(t.Context(), w.class(t, "default"))
	check(t, err)
	zones := map[string]bool{}
	for _, of := range offered.types {
		for _, o := range of.Offerings {
			if before, known := zones[o.Zone]; known && before != o.ZoneShifted || o.ZoneShifted && o.Available {
				t.Errorf("%s in %s as %s is shifted: %t, available: %t", of.Name, o.Zone, o.CapacityType, o.ZoneShifted, o.Available)
			}
			zones[o.Zone] = o.ZoneShifted
		}
	}
	maps.DeleteFunc(zones, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(zones))
}

// TestZonalShift covers what happens to offerings and machines from the start of a shift to its end.
func TestZonalShift(t *testing.T) {
	w := newWorld(t, "m5.large")
	p, _ := w.shifting(t)
	in := func(zone string) karpv1.Requirement {
		return karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{zone}}
	}
	there, elsewhere := w.launched(t, p, "there", in("us-east-1a")), w.launched(t, p, "elsewhere", in("us-east-1b"))
	id := there.Status.ProviderID
	_, err := p.Machines(t.Context())
	check(t, err)

	shift, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	check(t, err)
	check(t, p.shifts.refresh(t.Context()))
	if diff := cmp.Diff([]string{"us-east-1a"}, w.avoidedZones(t, p)); diff != "" {
		t.Error(diff)
	}
	w.sim.ResetCalls()
	refusal := new(cloud.TerminateError)
	if err := p.Terminate(t.Context(), id); !errors.As(err, &refusal) || refusal.Reason != cloud.ReasonZoneShifted {
		t.Errorf("terminating: %v, want the reason ZoneShifted", err)
	}
	if err := p.tag(t.Context(), id, map[string]string{"a": "b"}); err == nil ||
		!strings.Contains(err.Error(), "shifted away from zone us-east-1a") {
		t.Errorf("tagging: %v", err)
	}
	if n := len(w.sim.Calls()); n != 0 {
		t.Errorf("EC2 was called about a machine in the zone: %v", w.sim.Calls())
	}
	// EC2 stops showing the zone's machine, and the other one.
	number, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultForgetAll})
	check(t, err)
	listed, err := p.Machines(t.Context())
	check(t, err)
	if len(listed) != 1 || listed[0].ProviderID != id {
		t.Errorf("machines are %+v, want that of the zone alone", listed)
	}
	if m, err := p.Machine(t.Context(), id); err != nil || m.Labels[corev1.LabelTopologyZone] != "us-east-1a" {
		t.Errorf("the machine is %+v, %v", m, err)
	}
	w.sim.Clear(number)
	check(t, p.Terminate(t.Context(), elsewhere.Status.ProviderID))
	// A process that starts during the shift knows no answers, and does not terminate either.
	successor, _ := w.shifting(t)
	check(t, successor.shifts.refresh(t.Context()))
	if err := successor.Terminate(t.Context(), id); !errors.As(err, &refusal) || refusal.Reason != cloud.ReasonZoneShifted {
		t.Errorf("terminating after a restart: %v, want the reason ZoneShifted", err)
	}

	w.sim.EndShift(shift)
	check(t, p.shifts.refresh(t.Context()))
	if zones := w.avoidedZones(t, p); len(zones) > 0 {
		t.Errorf("after the end, %v are avoided", zones)
	}
	check(t, p.Terminate(t.Context(), id))
}

// TestZonalShiftAnswers covers what AWS may answer about shifts.
func TestZonalShiftAnswers(t *testing.T) {
	w := newWorld(t, "m5.large")
	p, _ := w.shifting(t)
	expect := func(what string, zones ...string) {
		t.Helper()
		if diff := cmp.Diff(zones, w.avoidedZones(t, p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	failing := func(f awssim.Fault, code string) {
		t.Helper()
		number, err := w.sim.Inject(f)
		check(t, err)
		if err := p.shifts.refresh(t.Context()); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("the error is %v, want %s", err, code)
		}
		w.sim.Clear(number)
	}
	own, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	check(t, err)
	_, err = w.sim.StartShift("us-east-1b", awssim.ShiftByAWS, 0)
	check(t, err)
	check(t, p.shifts.refresh(t.Context()))
	expect("one shift is applied", "us-east-1a")
	failing(awssim.Fault{Kind: awssim.FaultDeny, Service: "arc-zonal-shift"}, "AccessDenied")
	failing(awssim.Fault{Kind: awssim.FaultFail, Service: "arc-zonal-shift"}, "InternalError")
	failing(awssim.Fault{Kind: awssim.FaultGarble, Service: "arc-zonal-shift", Body: "<html>"}, "ARC GetManagedResource")
	failing(awssim.Fault{Kind: awssim.FaultGarble, Service: "arc-zonal-shift", ContentType: "application/json",
		Body: `{"arn":"other","appliedWeights":{},"zonalShifts":[]}`}, "the answer is about other")
	expect("after errors", "us-east-1a")
	w.sim.EndShift(own)
	check(t, p.shifts.refresh(t.Context()))
	expect("the autoshift is applied", "us-east-1b")
	w.sim.EndShift("")
	_, err = w.sim.StartShift("us-east-1c", awssim.ShiftPractice, 0)
	check(t, err)
	check(t, p.shifts.refresh(t.Context()))
	expect("a practice run", "us-east-1c")
	if at, any := p.unavailable.NextExpiry(); !any || time.Until(at) > 31*time.Minute {
		t.Errorf("catalogs are read again at %s", at)
	}
	w.clock.skip(31 * time.Minute)
	expect("it ends without a call")
	w.sim.ManageCluster(false)
	if err := p.shifts.refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "ResourceNotFound") {
		t.Errorf("not registered: %v", err)
	}
	expect("not registered")
}

// storePool creates a pool of the class in the API.
func (w *world) storePool(t *testing.T, name, class string, requirements ...karpv1.Requirement) {
	t.Helper()
	pool := poolOf(class)
	pool.Name, pool.Spec.Template.Spec.Requirements = name, requirements
	check(t, w.api.Create(t.Context(), pool))
}

// eventsOf returns what was announced without metrics.
func eventsOf(told []string) (events []string) {
	for _, line := range told {
		if !strings.HasPrefix(line, "metric") {
			events = append(events, line)
		}
	}
	return events
}

// TestZonalShiftAnnounced checks that each pool that may buy in the zone has one event per transition, also with two
// leaders.
func TestZonalShiftAnnounced(t *testing.T) {
	w := newWorld(t, "m5.large")
	w.storePool(t, "any", "default")
	w.storePool(t, "elsewhere", "default",
		karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: "NotIn", Values: []string{"us-east-1a"}})
	w.storePool(t, "unready", "unready")
	p, told := w.shifting(t)
	announced := func(p *Provider, told *[]string, want ...string) {
		t.Helper()
		*told = nil
		check(t, p.shifts.refresh(t.Context()))
		check(t, p.shifts.announce(t.Context()))
		if diff := cmp.Diff(want, eventsOf(*told)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	zone := w.class(t, "default").Status.Subnets[0]
	for _, s := range w.class(t, "default").Status.Subnets {
		if s.Zone == "us-east-1a" {
			zone = s
		}
	}
	announced(p, told)
	_, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	check(t, err)
	announced(p, told, "any ZonalShiftActive warning=true: Zonal shift detected: offerings in zone us-east-1a ("+zone.ZoneID+
		") are unavailable for this NodePool")
	if !slices.Contains(*told, "metric "+zone.ZoneID+" true") {
		t.Errorf("the metric is not set: %v", *told)
	}
	announced(p, told)
	w.clock.skip(announcedBefore + time.Minute)
	successor, news := w.shifting(t)
	announced(successor, news)
	w.sim.EndShift("")
	announced(successor, news, "any ZonalShiftCleared warning=false: Zonal shift ended: offerings in zone us-east-1a ("+zone.ZoneID+
		") are available for this NodePool again")
	announced(successor, news)
}

// Without zonal shifts, nothing is kept in memory and no call is made.
func TestZonalShiftOff(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	_, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	check(t, err)
	check(t, p.Prepare(t.Context()))
	if zones := w.avoidedZones(t, p); len(zones) > 0 ||
		w.sim.Calls()[awssim.CallCount{Service: "arc-zonal-shift", Action: "GetManagedResource",
			Code: "OK"}] > 0 {
		t.Errorf("%v are avoided, and the calls are %v", zones, w.sim.Calls())
	}
}
