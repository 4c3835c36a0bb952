package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// Equal claims are launched with one call, and each gets the same machine at every repeated call, also from a new
// process.
func TestLaunch(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		l := w.launcher()
		first := w.launchUntil(ctx, l, names(40)...)
		w.boughtOnce(first)
		if n := w.count("CreateFleet", "OK"); n != 1 {
			t.Errorf("%d calls of CreateFleet for 40 claims, want 1", n)
		}
		again, restarted := w.launchUntil(ctx, l, names(40)...), w.launchUntil(ctx, w.launcher(), names(40)...)
		for _, name := range names(40) {
			if again[name] != first[name] || restarted[name] != first[name] {
				t.Errorf("%s: %s, then %s, then after a restart %s", name, first[name], again[name], restarted[name])
			}
		}
		w.boughtOnce(first)
		if id := w.calls[len(w.calls)-1].RequestID; id == "" {
			t.Error("calls are reported without EC2's request ID")
		}
	})
}

// The machine and the instance have the attributes of the claim and the class.
func TestMachine(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		l := w.launcher()
		r := w.launch(ctx, l, "one")["one"]
		w.must(r.err)
		i := w.alive()[0]
		tags := map[string]string{"team": "a", "kubernetes.io/cluster/" + cluster: "owned", "karpenter.sh/nodepool": "pool",
			"eks:eks-cluster-name":           cluster,
			"karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.sh/nodeclaim": "one", TagFleetLaunch: w.records.entries["uid-one"].Token()}
		for key, value := range tags {
			if i.Tags[key] != value {
				t.Errorf("tag %s is %q, want %q", key, i.Tags[key], value)
			}
		}
		m := r.machine
		want := map[string]string{corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: zoneA,
			karpv1.LabelCapacityType: "on-demand",
			karpv1.LabelNodePool:     "pool", corev1.LabelArchStable: "amd64", "karpenter.k8s.aws/instance-tenancy": "default",
			"topology.k8s.aws/zone-id": i.ZoneID, "karpenter.k8s.aws/instance-ami-id": i.ImageID}
		for key, value := range want {
			if m.Labels[key] != value {
				t.Errorf("label %s is %q, want %q", key, m.Labels[key], value)
			}
		}
		switch {
		case m.ProviderID != "aws:///"+zoneA+"/"+i.ID:
			t.Errorf("machine: m.ProviderID is %v, want %v, of %+v", m.ProviderID, "aws:///"+zoneA+"/"+i.ID, i)
		case m.Claim != "one":
			t.Errorf(`machine: m.Claim is %v, want "one", of %+v`, m.Claim, i)
		case m.ImageID != i.ImageID:
			t.Errorf("machine: m.ImageID is %v, want %v", m.ImageID, i.ImageID)
		case m.Capacity["cpu"] != 2000:
			t.Errorf(`machine: m.Capacity["cpu"] is %v, want 2000, of %+v`, m.Capacity["cpu"], i)
		case i.Profile == "":
			t.Errorf(`machine: i.Profile is "", of %+v`, i)
		case m.Annotations["karpenter.k8s.aws/instance-profile-name"] != "nodes":
			t.Errorf(`machine: m.Annotations["karpenter.k8s.aws/instance-profile-name"] is %v, want "nodes", of %+v`,
				m.Annotations["karpenter.k8s.aws/instance-profile-name"], i)
		}
		read, err := l.Machine(ctx, m.ProviderID)
		w.must(err)
		switch {
		case read.ProviderID != m.ProviderID:
			t.Errorf("read: read.ProviderID is %v, want %v", read.ProviderID, m.ProviderID)
		case read.Claim != "one":
			t.Errorf(`read: read.Claim is %v, want "one"`, read.Claim)
		case read.Labels[karpv1.LabelCapacityType] != "on-demand":
			t.Errorf(`read: read.Labels[karpv1.LabelCapacityType] is %v, want "on-demand"`, read.Labels[karpv1.LabelCapacityType])
		case read.Labels[awsv1.LabelInstanceAMIID] != i.ImageID:
			t.Errorf("read: the image is %q, want %q", read.Labels[awsv1.LabelInstanceAMIID], i.ImageID)
		case read.Terminating:
			t.Errorf("read: read.Terminating is true, %+v", read)
		}
		runs := func(want bool, when string) {
			if got, err := l.Runs(ctx, m.ProviderID[strings.LastIndexByte(m.ProviderID, '/')+1:]); err != nil || got != want {
				t.Errorf("Runs %s: %v, %v, want %v", when, got, err, want)
			}
		}
		runs(true, "after the launch")
		w.must(l.Terminate(ctx, m.ProviderID))
		runs(false, "while it terminates")
		if read, err = l.Machine(ctx, m.ProviderID); err != nil || !read.Terminating {
			t.Errorf("while it terminates: %+v, %v", read, err)
		}
		w.must(l.Terminate(ctx, m.ProviderID))
		w.pass(time.Minute)
		runs(false, "after its termination")
		if err := l.Terminate(ctx, m.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("after its termination: %v, want %v", err, cloud.ErrNotFound)
		}
		if err := l.Terminate(ctx, "kwok://x"); err == nil || errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("a foreign provider ID: %v", err)
		}
	})
}

// A process is killed before and after each of its steps. The next process ends with one machine per claim.
func TestKilledAnywhere(t *testing.T) {
	claims := names(3)
	steps := 0
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		p := &process{EC2API: w.ec2, RecordStore: w.records, dies: 1 << 30}
		w.boughtOnce(w.launchUntil(ctx, w.launcher(func(o *Options) { o.EC2, o.RecordStore = p, p }), claims...))
		steps = p.steps
	})
	if steps < 5 {
		t.Fatalf("a launch of three claims has %d steps", steps)
	}
	for step := 1; step <= steps; step++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d, after %v", step, after), func(t *testing.T) {
				in(t, awssim.Options{Lag: 3 * time.Second}, func(ctx context.Context, w *world) {
					w.pass(10 * time.Second) // the profile and all instances are shown
					p := &process{EC2API: w.ec2, RecordStore: w.records, dies: step, after: after}
					brief, cancel := context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
					w.launch(brief, w.launcher(func(o *Options) { o.EC2, o.RecordStore = p, p }), claims...)
					w.boughtOnce(w.launchUntil(ctx, w.launcher(), claims...))
				})
			})
		}
	}
}

// Two controllers launch for the same claims at the same time.
func TestTwoProcesses(t *testing.T) {
	in(t, awssim.Options{Lag: 2 * time.Second}, func(ctx context.Context, w *world) {
		w.pass(10 * time.Second)
		a, b := w.launcher(), w.launcher()
		done := make(chan map[string]string)
		go func() { done <- w.launchUntil(ctx, a, names(20)...) }()
		second := w.launchUntil(ctx, b, names(20)...)
		first := <-done
		for name, machine := range first {
			if second[name] != machine {
				t.Errorf("%s has %s and %s", name, machine, second[name])
			}
		}
		w.boughtOnce(first)
	})
}

// After any temporary API fault, there is one machine per claim in the end.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault awssim.Fault
		for_  time.Duration // then the fault is removed
	}{
		{"one answer lost", awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 1}, 0},
		{"all answers lost", awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet"}, 0},
		{"answers of everything lost for a minute", awssim.Fault{Kind: awssim.FaultLose}, time.Minute},
		{"down for a minute", awssim.Fault{Kind: awssim.FaultFail}, time.Minute},
		{"frozen for a minute", awssim.Fault{Kind: awssim.FaultFreeze}, time.Minute},
		{"throttled to one call a second", awssim.Fault{Kind: awssim.FaultThrottle, Rate: 1}, 0},
		{"throttled to one fleet in ten seconds", awssim.Fault{Kind: awssim.FaultThrottle, Action: "CreateFleet", Rate: 0.1}, 0},
		{"templates not seen twice", awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 2,
			Code: "InvalidLaunchTemplateName.NotFoundException", Status: 400}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, awssim.Options{Lag: time.Second}, func(ctx context.Context, w *world) {
				w.pass(5 * time.Second)
				id, err := w.sim.Inject(test.fault)
				w.must(err)
				if test.for_ > 0 {
					timer := time.AfterFunc(test.for_, func() { w.sim.Clear(id) })
					defer timer.Stop()
				}
				w.boughtOnce(w.launchUntil(ctx, w.launcher(), names(10)...))
				w.sim.Clear(0)
			})
		})
	}
}

// One throttled call fails none of forty launches.
func TestThrottledOnce(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 1, Code: "RequestLimitExceeded", Status: 503})
		w.must(err)
		for name, r := range w.launch(ctx, w.launcher(), names(40)...) {
			if r.err != nil {
				t.Errorf("%s: %v", name, r.err)
			}
		}
		if n := w.count("CreateFleet", "RequestLimitExceeded"); n != 1 {
			t.Errorf("%d calls were throttled, want 1", n)
		}
	})
}

// buyAndDie runs a process that launches for the claims and is killed right after EC2 has created the fleet.
func (w *world) buyAndDie(ctx context.Context, list ...string) {
	before := len(w.alive())
	for dies := 1; len(w.alive()) == before; dies++ {
		clear(w.records.entries)
		p := &process{EC2API: w.ec2, RecordStore: w.records, dies: dies, after: true}
		brief, cancel := context.WithTimeout(ctx, time.Minute) // it reaches that step within this time
		w.launch(brief, w.launcher(func(o *Options) { o.EC2, o.RecordStore = p, p }), list...)
		cancel()
	}
}

// The token was used by another request, which an earlier version did not store. The instances of that request are
// adopted, and only the rest is launched.
func TestMismatch(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.must(w.sim.Drain("m5.large", zoneA, "on-demand", 2))
		w.buyAndDie(ctx, names(3)...)
		w.spoil(earlier)
		before := w.records.snapshot()
		w.must(w.sim.Refill("m5.large", zoneA, "on-demand"))
		w.class.Spec.Tags = map[string]string{"team": "b"} // makes another request
		machines := w.launchUntil(ctx, w.launcher(), names(3)...)
		w.boughtOnce(machines)
		if w.count("CreateFleet", "IdempotentParameterMismatch") == 0 {
			t.Error("no request had a token that another one had used")
		}
		kept := 0
		for uid, e := range w.records.snapshot() {
			if e == before[uid] {
				kept++
			}
		}
		if kept != 2 {
			t.Errorf("%d claims kept their fleet launch, want the 2 that have an instance of it", kept)
		}
	})
}

// A claim that is launched again after its class has changed gets the machine of the first launch, with the origin of
// that launch. This holds if the fleet launch is still in memory, if another process finds it by its tag, if its
// recorded request is sent again, and if EC2 knows its token with another request.
func TestOriginOfEarlierMachine(t *testing.T) {
	in(t, awssim.Options{Lag: 3 * time.Second}, func(ctx context.Context, w *world) {
		w.pass(10 * time.Second)
		first := w.launcher()
		o := w.order("claim")
		before, err := first.Launch(ctx, o)
		w.must(err)
		want := map[string]string{awsv1.AnnotationNodeClassHash: w.class.Hash(), awsv1.AnnotationNodeClassHashVersion: awsv1.HashVersion,
			awsv1.AnnotationInstanceProfile: w.class.Status.InstanceProfile}
		w.class = w.class.DeepCopy()
		w.class.Spec.Tags, w.class.Status.InstanceProfile = map[string]string{"team": "b"}, "others"
		if w.class.Hash() == want[awsv1.AnnotationNodeClassHash] {
			t.Fatal("the class has the same hash with other tags")
		}
		w.again(ctx, "asked again", first, before.ProviderID, want)
		w.again(ctx, "another process that asks for what is on record", w.launcher(w.hidden(time.Hour)), before.ProviderID, want)
		if w.count("CreateFleet", "IdempotentParameterMismatch") != 0 {
			t.Error("the recorded request does not match its token")
		}
		kept := w.records.snapshot()
		w.spoil(earlier)
		w.again(ctx, "another process whose request does not match", w.launcher(), before.ProviderID, want)
		w.spoil(func(e *Record) { *e = kept["uid-claim"] })
		if w.count("CreateFleet", "IdempotentParameterMismatch") != 1 {
			t.Errorf("%d requests that do not match, want 1", w.count("CreateFleet", "IdempotentParameterMismatch"))
		}
		w.pass(10 * time.Second)
		w.again(ctx, "another process that finds it", w.launcher(), before.ProviderID, want)
		for uid, e := range w.records.snapshot() { // a version that did not record the class
			earlier(&e)
			e.Origin = Origin{}
			w.records.entries[uid] = e
		}
		want[awsv1.AnnotationNodeClassHash], want[awsv1.AnnotationInstanceProfile] = w.class.Hash(), "others"
		w.again(ctx, "an entry of an earlier version", w.launcher(), before.ProviderID, want)
	})
}

// again launches the claim once more and compares its machine.
func (w *world) again(ctx context.Context, when string, l *Launcher, id string, annotations map[string]string) {
	w.Helper()
	m, err := l.Launch(ctx, w.order("claim"))
	w.must(err)
	if diff := cmp.Diff(annotations, m.Annotations); m.ProviderID != id || diff != "" {
		w.Errorf("%s: machine %s, want %s; its annotations (-want +got):\n%s", when, m.ProviderID, id, diff)
	}
}

// No machine is launched for claims whose record cannot be written. The other claims of the batch get theirs.
func TestRecordFails(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.records.refuse = func(claim string, _ Record) error {
			if claim == "claim-001" {
				return errors.New("no")
			}
			return nil
		}
		l := w.launcher()
		results := w.launch(ctx, l, names(3)...)
		switch {
		case results["claim-001"].err == nil:
			t.Fatalf(`results["claim-001"].err is nil, instances; %+v`, results)
		case results["claim-000"].err != nil:
			t.Fatalf(`results["claim-000"].err is %v, want nil`, results["claim-000"].err)
		case results["claim-002"].err != nil:
			t.Fatalf(`results["claim-002"].err is %v, want nil`, results["claim-002"].err)
		case len(w.alive()) != 2:
			t.Fatalf("len(w.alive()) is %v, want 2", len(w.alive()))
		}
		switch e := w.records.entries["uid-claim-002"]; {
		case e.Attempt != 1:
			t.Errorf("e.Attempt is %v, want 1", e.Attempt)
		case e.Size != 3:
			t.Errorf("e.Size is %v, want 3", e.Size)
		case e.Index != 2:
			t.Errorf("e.Place is %v, want 2", e.Index)
		}
		w.records.refuse = nil
		w.boughtOnce(w.launchUntil(ctx, l, names(3)...))
	})
}

// Two processes that launch for the same claims at the same time, and see each other's records as they are written,
// launch once.
func TestTwoProcessesAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		in(t, awssim.Options{Seed: seed, Lag: 100 * time.Millisecond}, func(ctx context.Context, w *world) {
			chance := rand.New(rand.NewPCG(seed, 1))
			first, second := w.launcher(withSlowRecords(w, chance)), w.launcher(withSlowRecords(w, chance))
			list := names(8)
			machines := map[string]string{}
			var both sync.WaitGroup
			var mu sync.Mutex
			for _, l := range []*Launcher{first, second} {
				both.Go(func() {
					for range 20 {
						for name, r := range w.launch(ctx, l, list...) {
							mu.Lock()
							if r.err == nil {
								machines[name] = r.machine.ProviderID
							}
							mu.Unlock()
						}
					}
				})
			}
			both.Wait()
			if len(machines) != len(list) {
				t.Errorf("seed %d: %d of %d claims have a machine", seed, len(machines), len(list))
			}
			w.boughtOnce(machines)
		})
	}
}

// withSlowRecords delays writes and reads of records by up to 60 ms.
func withSlowRecords(w *world, chance *rand.Rand) func(*Options) {
	return func(o *Options) { o.RecordStore = &slowRecords{records: w.records, chance: chance} }
}

type slowRecords struct {
	*records
	mu     sync.Mutex
	chance *rand.Rand
}

func (s *slowRecords) wait() {
	s.mu.Lock()
	d := time.Duration(s.chance.Int64N(int64(60 * time.Millisecond)))
	s.mu.Unlock()
	<-time.After(d)
}

func (s *slowRecords) Read(ctx context.Context, claim *karpv1.NodeClaim) (Record, error) {
	s.wait()
	defer s.wait()
	return s.records.Read(ctx, claim)
}

func (s *slowRecords) Replace(ctx context.Context, claim *karpv1.NodeClaim, before, after Record) error {
	s.wait()
	defer s.wait()
	return s.records.Replace(ctx, claim, before, after)
}

// An unavailable offering is remembered and reported. The next try launches elsewhere.
func TestUnavailable(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.must(w.sim.Drain("m5.large", zoneA, "on-demand", 1))
		l := w.launcher()
		short := 0
		for _, r := range w.launch(ctx, l, names(3)...) {
			var insufficient *cloud.InsufficientCapacityError
			if errors.As(r.err, &insufficient) {
				short++
			}
		}
		if short != 2 || len(w.alive()) != 1 {
			t.Errorf("%d claims found no capacity and %d instances run, want 2 and 1", short, len(w.alive()))
		}
		if !w.unavailable.Has(instance.Offer{CapacityType: "on-demand", Type: "m5.large", Zone: zoneA, Class: "other"}) {
			t.Error("the offering is not marked as unavailable for all classes")
		}
		wide := []karpv1.Requirement{oneOf(corev1.LabelInstanceTypeStable, "m5.large"), oneOf(karpv1.LabelCapacityType, "on-demand"),
			oneOf(corev1.LabelTopologyZone, zoneA, zoneB)}
		m, err := l.Launch(ctx, w.order("wide", wide...))
		if err != nil || m.Labels[corev1.LabelTopologyZone] != zoneB {
			t.Errorf("elsewhere: %+v, %v", m, err)
		}
		calls := w.count("CreateFleet", "OK")
		if _, err := l.Launch(ctx, w.order("narrow")); err == nil {
			t.Error("an unavailable offering was launched")
		}
		if w.count("CreateFleet", "OK") != calls {
			t.Error("EC2 was called for what it had just reported as unavailable")
		}
	})
}

// A subnet without free addresses is marked, and reserved addresses that were not used are released.
func TestSubnetFull(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		var full string
		for _, s := range w.class.Status.Subnets {
			if s.Zone == zoneA {
				full = s.ID
			}
		}
		w.must(w.sim.TakeAddresses(full, 8187))
		r := w.launch(ctx, w.launcher(), "one")["one"]
		var insufficient *cloud.InsufficientCapacityError
		if !errors.As(r.err, &insufficient) || !w.unavailable.HasSubnet(full) {
			t.Errorf("%v; subnet marked: %v", r.err, w.unavailable.HasSubnet(full))
		}
		if w.subnets.aside[full] != 0 {
			t.Errorf("%d addresses are reserved without a use", w.subnets.aside[full])
		}
		if w.unavailable.Has(instance.Offer{CapacityType: "on-demand", Type: "m5.large", Zone: zoneA}) {
			t.Error("the type is marked as unavailable, but it is not the cause")
		}
	})
}

// Failures other than a lack of capacity have a reason.
func TestCreateErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(w *world)
		reason string
	}{
		{"no permission", func(w *world) {
			_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "RunInstances"})
			w.must(err)
		}, "Unauthorized"},
		{"no permission for fleets", func(w *world) {
			_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "CreateFleet"})
			w.must(err)
		}, "Unauthorized"},
		{"no such profile", func(w *world) { w.class.Status.InstanceProfile = "none" }, "InstanceProfileNameInvalid"},
		{"no such image", func(w *world) { w.class.Status.AMIs[0].ID = "ami-0"; w.makeAssortment() }, "AMINotFound"},
		{"no role for spot", func(w *world) {
			w.must(w.sim.Reject("", "", "", awssim.Refusal{Code: codeNoSpotRole,
				Message: "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances."}))
		}, "SpotSLRCreationFailed"},
		{"user data that is none", func(w *world) {
			w.class.Spec.UserData = aws.String("Content-Type: multipart/mixed; boundary=\"x\"\n\nbroken")
		}, "InvalidUserData"},
		{"user data that labels of the pool make too long", func(w *world) {
			w.class.Spec.AMISelectorTerms[0] = awsv1.AMISelectorTerm{Alias: "bottlerocket@latest"} // which is not compressed
			w.class.Spec.UserData = aws.String("[settings]\nmotd = \"" + strings.Repeat("#", userdata.Limit-300) + "\"")
		}, "UserDataSizeLimitExceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				test.before(w)
				r := w.launch(ctx, w.launcher(), "one")["one"]
				var failed *cloud.CreateError
				if !errors.As(r.err, &failed) || failed.Reason != test.reason {
					t.Errorf("error is %v, want reason %s", r.err, test.reason)
				}
				w.sim.Clear(0)
			})
		})
	}
}

// Machines lists the owner of each machine before any machine is tagged with its claim.
func TestMachines(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		machines := w.launchUntil(ctx, w.launcher(), names(5)...)
		listed, err := w.launcher().Machines(ctx)
		w.must(err)
		owners := map[string]string{}
		for _, m := range listed {
			owners[m.Claim] = m.ProviderID
		}
		for claim, machine := range machines {
			if owners[claim] != machine {
				t.Errorf("%s has %s, and is listed with %q", claim, machine, owners[claim])
			}
		}
		if len(listed) != 5 {
			t.Errorf("%d machines are listed, want 5", len(listed))
		}
	})
}

// Many reads and terminations need few calls, and an instance that does not exist does not affect the others.
func TestBatchedReads(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		l := w.launcher()
		machines := w.launchUntil(ctx, l, names(30)...)
		machines["stranger"] = "aws:///us-east-1a/i-00000000000000000"
		errs := make(chan error)
		for _, id := range machines {
			go func() { errs <- l.Terminate(ctx, id) }()
		}
		missing := 0
		for range machines {
			if err := <-errs; errors.Is(err, cloud.ErrNotFound) {
				missing++
			} else if err != nil {
				t.Error(err)
			}
		}
		if missing != 1 || len(w.alive()) != 0 {
			t.Errorf("%d not found, %d still run", missing, len(w.alive()))
		}
		if n := w.count("TerminateInstances", "OK"); n != 1 {
			t.Errorf("%d calls of TerminateInstances, want 1", n)
		}
		if n := w.count("DescribeInstances", "OK"); n != 1 {
			t.Errorf("%d calls of DescribeInstances, want 1", n)
		}
	})
}

// Launch templates are created once, kept while they are used, and found by another process.
func TestTemplates(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		l := w.launcher()
		w.launchUntil(ctx, l, "one")
		w.launchUntil(ctx, l, "two")
		if n := w.count("CreateLaunchTemplate", "OK"); n != 1 {
			t.Errorf("%d launch templates were created, want 1", n)
		}
		w.must(l.SweepTemplates(ctx))
		if n := w.templates(ctx); n != 1 {
			t.Errorf("%d launch templates after a sweep, want 1", n)
		}
		next := w.launcher()
		w.must(next.AdoptTemplates(ctx))
		w.pass(TemplateIdle + time.Minute)
		w.must(next.SweepTemplates(ctx))
		if n := w.templates(ctx); n != 0 {
			t.Errorf("%d launch templates after an hour without use, want 0", n)
		}
		w.launchUntil(ctx, l, "three") // it assumes that a deleted template exists
		w.must(l.DeleteTemplates(ctx, "default"))
		if n := w.templates(ctx); n != 0 {
			t.Errorf("%d launch templates of a class that is deleted, want 0", n)
		}
	})
}

func (w *world) templates(ctx context.Context) int {
	out, err := w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	w.must(err)
	return len(out.LaunchTemplates)
}

// If the context of a caller ends, the launch continues, and the next call gets its result.
func TestCallerGivesUp(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultSlow, Action: "CreateFleet", Delay: 20 * time.Second})
		w.must(err)
		l := w.launcher()
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if r := w.launch(brief, l, "one")["one"]; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want %v", r.err, context.DeadlineExceeded)
		}
		w.boughtOnce(w.launchUntil(ctx, l, "one"))
		if n := w.count("CreateFleet", "OK"); n != 1 {
			t.Errorf("%d calls of CreateFleet, want 1", n)
		}
	})
}

// Claims that differ are not launched together, and the rate limiter keeps their calls below EC2's limits.
func TestGovernor(t *testing.T) {
	in(t, awssim.Options{Lag: 0}, func(ctx context.Context, w *world) {
		l := w.launcher()
		began := time.Now()
		done := make(chan error)
		for i := range 100 {
			o := w.order(fmt.Sprintf("c%d", i))
			o.Claim.Annotations = map[string]string{}
			o.Claim.Spec.Requirements = slices.Clone(o.Claim.Spec.Requirements)
			o.Class = w.class.DeepCopy()
			o.Class.UID = o.Claim.UID // each has another class
			go func() { _, err := l.Launch(ctx, o); done <- err }()
		}
		for range 100 {
			w.must(<-done)
		}
		if n := w.count("CreateFleet", "RequestLimitExceeded"); n > 3 {
			t.Errorf("%d of 100 calls were throttled", n)
		}
		if elapsed := time.Since(began); elapsed < 9*time.Second || elapsed > 20*time.Second {
			t.Errorf("100 calls took %v, want slightly more than the 10 s that EC2's burst of 50 and rate of 5 per second allow", elapsed)
		}
		if n := len(w.alive()); n != 100 {
			t.Errorf("%d instances, want 100", n)
		}
	})
}

// A thousand claims of four kinds at once need four calls, at EC2's published limits. They finish as soon as their
// batches do: after the second that a window may stay open, and the duration of the calls.
func TestThousandClaims(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		l, began, done := w.launcher(), time.Now(), make(chan error)
		kinds := []string{"m5.large", "m5.xlarge", "m6i.large", "c5.large"}
		for i := range 1000 {
			o := w.order(fmt.Sprintf("c%04d", i), oneOf(corev1.LabelInstanceTypeStable, kinds[i%4]), oneOf(karpv1.LabelCapacityType, "on-demand"))
			go func() { _, err := l.Launch(ctx, o); done <- err }()
		}
		short := 0
		for range 1000 {
			var insufficient *cloud.InsufficientCapacityError
			if err := <-done; errors.As(err, &insufficient) {
				short++
			} else if err != nil {
				t.Error(err)
			}
		}
		if n := w.count("CreateFleet", "OK"); n != 4 || time.Since(began) > 3*time.Second {
			t.Errorf("%d calls of CreateFleet in %v, want 4 within 3 s", n, time.Since(began))
		}
		if n := len(w.alive()); n != 1000-short || n < 100 {
			t.Errorf("%d instances, and %d claims found no capacity, of 1000", n, short)
		}
	})
}

// Tag adds the tags that an instance lacks and keeps those that it has. For an instance that is gone it returns
// ErrNotFound.
func TestTag(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.class.Spec.Tags["Name"] = "ours"
		l := w.launcher()
		m := w.launch(ctx, l, "one")["one"].machine
		tags := map[string]string{"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": "one", "new": "yes"}
		w.must(l.Tag(ctx, m.ProviderID, tags))
		has := w.sim.Instances()[0].Tags
		for key, want := range map[string]string{"Name": "ours", "karpenter.sh/nodeclaim": "one", "new": "yes", "team": "a"} {
			if has[key] != want {
				t.Errorf("tag %s is %q, want %q", key, has[key], want)
			}
		}
		before := w.count("CreateTags", "OK")
		w.must(l.Tag(ctx, m.ProviderID, tags))
		if n := w.count("CreateTags", "OK"); before != 1 || n != before {
			t.Errorf("tagged by %d calls, and again by %d although no tag was missing", before, n-before)
		}
		w.must(l.Terminate(ctx, m.ProviderID))
		w.pass(time.Minute)
		if err := l.Tag(ctx, m.ProviderID, map[string]string{"late": "yes"}); !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("after its termination: %v, want %v", err, cloud.ErrNotFound)
		}
	})
}

// endless is an EC2 whose lists have no end.
type endless struct{ EC2API }

func (e endless) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	first := *in
	first.NextToken = nil
	out, err := e.EC2API.DescribeInstances(ctx, &first, o...)
	if err == nil {
		out.NextToken = aws.String("more")
	}
	return out, err
}

// Reading a list without an end results in an error instead of a list of machines.
func TestEndlessList(t *testing.T) {
	in(t, awssim.Options{Limits: map[string]awssim.Limit{}}, func(ctx context.Context, w *world) {
		l := w.launcher(func(o *Options) { o.EC2 = endless{o.EC2} })
		if listed, err := l.Machines(ctx); call.KindOf(err) != call.Transient {
			t.Errorf("%d machines are listed, and %v; want an error", len(listed), err)
		}
	})
}
