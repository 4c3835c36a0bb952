package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// fleetSize is the number of nodes of the fleet that TestAWSFleetUnderFaults keeps under each fault.
const fleetSize = 6

// awsFault is a kind of wrong response of AWS while a fleet runs.
type awsFault struct {
	name string
	// begin starts the wrong responses until the returned function is called.
	begin func(s *awsStage) (end func())
	// denied means that no machine can be launched meanwhile.
	denied bool
	// paced means that the limit on involuntary removals must act, and allows one removal per window.
	paced bool
}

// injected is a fault of the simulated AWS.
func injected(kind awssim.FaultKind) awsFault {
	return awsFault{name: string(kind), begin: func(s *awsStage) func() { return s.inject(awssim.Fault{Kind: kind}) }}
}

// together combines several faults.
func together(name string, faults ...awsFault) awsFault {
	all := awsFault{name: name, begin: func(s *awsStage) func() {
		var ends []func()
		for _, f := range faults {
			ends = append(ends, f.begin(s))
		}
		return func() {
			for _, end := range ends {
				end()
			}
		}
	}}
	for _, f := range faults {
		all.denied, all.paced = all.denied || f.denied, all.paced || f.paced
	}
	return all
}

// denying adds a policy that denies launches unless the condition key has one of the values.
func denying(s *awsStage, key string, values ...string) {
	s.t.Helper()
	if err := s.world.sim.DenyUnless(key, values...); err != nil {
		s.t.Fatal(err)
	}
}

var awsFaults = []awsFault{
	injected(awssim.FaultIgnoreFilters), injected(awssim.FaultIgnoreTokens), injected(awssim.FaultUnknownFields),
	injected(awssim.FaultOlderFields), injected(awssim.FaultOddPages), injected(awssim.FaultForgetHalf), injected(awssim.FaultForgetAll),
	{name: "conditions-met", begin: func(s *awsStage) func() {
		denying(s, awssim.ConditionEncrypted, "true")
		denying(s, awssim.ConditionTokens, "required")
		return func() { denying(s, awssim.ConditionEncrypted); denying(s, awssim.ConditionTokens) }
	}},
	{name: "conditions-deny", denied: true, begin: func(s *awsStage) func() {
		denying(s, awssim.ConditionInstanceType, "p5.48xlarge")
		return func() { denying(s, awssim.ConditionInstanceType) }
	}},
	impaired,
	together("odd-lists", injected(awssim.FaultIgnoreFilters), injected(awssim.FaultOddPages), injected(awssim.FaultOlderFields), injected(awssim.FaultIgnoreTokens)),
	together("half-of-odd-lists", injected(awssim.FaultForgetHalf), injected(awssim.FaultOddPages), injected(awssim.FaultUnknownFields), injected(awssim.FaultIgnoreFilters)),
	together("impaired-in-odd-lists", impaired, injected(awssim.FaultIgnoreFilters), injected(awssim.FaultOddPages)),
}

// impaired makes all machines fail the status checks of EC2.
var impaired = awsFault{name: "impaired", paced: true, begin: func(s *awsStage) func() {
	fleet := s.instances()
	impair := func(which string) {
		for _, i := range fleet {
			if err := s.world.sim.Impair(i.ID, which); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	impair("instance")
	return func() { impair("") }
}}

// TestAWSFleetUnderFaults checks that a fleet keeps running whatever wrong responses AWS gives: its machines are
// kept, except those whose removal the limit on involuntary removals allows, no machine is launched twice, a pod that
// is created meanwhile gets a node, and nothing remains paused when the fault is over.
func TestAWSFleetUnderFaults(t *testing.T) {
	t.Parallel()
	if effort(0, 1, 1) == 0 {
		t.Skip("takes minutes; make e2e runs it")
	}
	w := startAWS(t)
	(&stage{cluster: w.cluster, t: t, name: "aws"}).apply("testdata/aws-class.yaml")
	w.run(t, "--webhook-port=0", quickTimers[0]+",removal-window=90s,second-look=5s,launch=1m")
	for _, fault := range awsFaults {
		t.Run(fault.name, func(t *testing.T) { fault.play(t, w) })
	}
}

func (f awsFault) play(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-fleet-"+f.name)
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand), among("karpenter.k8s.aws/instance-cpu", "2"), among("karpenter.k8s.aws/instance-category", "c", "m"))
	s.scale("app", fleetSize)
	await(t, patience, "the fleet to run", s.running("app", fleetSize))
	s.boughtOnce()
	before := s.instances()
	if len(before) != fleetSize {
		t.Fatalf("the fleet is of %d instances, want %d", len(before), fleetSize)
	}

	w.sim.ResetCalls()
	end := f.begin(s)
	t.Cleanup(end) // also if the case fails
	s.scale("app", fleetSize+1)
	switch {
	case f.denied:
		await(t, patience, "launches to be denied", s.denied)
	default:
		await(t, patience, "the new pod to run as well", s.running("app", fleetSize+1))
	}
	if f.paced {
		await(t, 3*patience, "removals to be paused", s.paused(true))
	}
	w.sim.ResetCalls()
	await(t, patience, "five rounds of the collector", func(context.Context) error {
		if n := s.answered("DescribeInstances", "OK") + s.answered("DescribeInstances", "InvalidInstanceID.NotFound"); n < 5 {
			return fmt.Errorf("%d calls of DescribeInstances", n)
		}
		return nil
	})
	ended := s.endedOf(before)
	if most := f.mostEnded(); ended > most {
		t.Errorf("%d of %d living machines were ended, at most %d may", ended, fleetSize, most)
	}
	if bought, most := len(s.all()), fleetSize+1+ended; bought > most {
		t.Errorf("%d machines were launched for a fleet of %d, %d of which were replaced", bought, fleetSize+1, ended)
	}

	end()
	await(t, 3*patience, "all pods to run", s.running("app", fleetSize+1))
	await(t, 2*patience, "nothing to be paused", s.paused(false))
	s.boughtOnce()
	if n, most := len(s.instances()), fleetSize+1; n != most {
		t.Errorf("%d machines exist at the end, want %d", n, most)
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// mostEnded returns the maximum number of removals that the limit allows during the fault: one per window if machines
// fail their status checks, and at most four windows.
func (f awsFault) mostEnded() int {
	if f.paced {
		return 4
	}
	return 0
}

// endedOf returns how many of the instances have ended or are ending.
func (s *awsStage) endedOf(fleet []awssim.Instance) int {
	alive := map[string]bool{}
	for _, i := range s.instances() {
		alive[i.ID] = true
	}
	n := 0
	for _, i := range fleet {
		if !alive[i.ID] {
			n++
		}
	}
	return n
}

// denied fails until a claim reports that EC2 has denied its launch.
func (s *awsStage) denied(context.Context) error {
	for _, e := range s.ledger.claimsOf(s.name) {
		if launched := e.object.Condition(karpv1.ConditionLaunched); launched != nil && launched.Reason == "Unauthorized" {
			return nil
		}
	}
	return fmt.Errorf("no claim says so, calls: %v", s.world.sim.Calls())
}

// paused fails until removals or launches of the pool are paused, or until none are.
func (s *awsStage) paused(want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		pool := &karpv1.NodePool{}
		if err := s.Get(ctx, types.NamespacedName{Name: s.name}, pool); err != nil {
			return err
		}
		text := pool.Annotations[karpv1.AnnotationPauses]
		if (len(pause.Parse(text).Active(time.Now())) > 0) != want {
			return fmt.Errorf("the pool's pauses: %q", text)
		}
		return nil
	}
}
