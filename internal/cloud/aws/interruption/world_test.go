package interruption

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// world is a simulated AWS with some machines, each with a claim that is deleted when a decision requires it, and a
// watcher.
type world struct {
	*awstest.World
	*awssim.Cloud
	watcher *Watcher
	ids     []string // of the machines

	mu        sync.Mutex
	claims    map[string]Claim
	replaced  map[string]time.Time // when, by instance
	deadlines map[string]time.Time // deadline, by instance
	sold      []Offering
	received  map[Kind]int
	foreign   map[Kind]int
	unhealthy map[Category]int
	deleted   int
	spoilt    int
	waited    []time.Duration
	failed    []string
	troubles  []string
	calls     map[string]int // by operation and code
	events    map[string]int // by instance and reason
	held      Held           // from the last poll
	// unreadable is the instance whose volumes cannot be read.
	unreadable string
	may        func(failing []Decision) (map[string]bool, error)
	refuse     int  // how many decisions still fail
	stale      bool // claims are found in their state before any decision
}

// watching runs a test with n machines of a capacity type that have run for a minute, and the watcher's loops.
func watching(t *testing.T, n int, capacityType string, test func(w *world)) {
	t.Helper()
	awstest.Run(t, awssim.Options{Queue: "interruptions"}, func(ctx context.Context, aws *awstest.World) {
		w := &world{World: aws, Cloud: aws.AWS, claims: map[string]Claim{}, replaced: map[string]time.Time{}, deadlines: map[string]time.Time{},
			received: map[Kind]int{}, foreign: map[Kind]int{}, unhealthy: map[Category]int{}, calls: map[string]int{}, events: map[string]int{}}
		cfg := w.Config.Copy()
		cfg.Retryer = nil // the SDK's own
		w.launch(ctx, n, capacityType)
		var err error
		w.watcher, err = NewWatcher(sqs.NewFromConfig(cfg), ec2.NewFromConfig(cfg), w.options())
		w.Must(err)
		running, stop := context.WithCancel(ctx)
		var loops sync.WaitGroup
		loops.Go(func() { w.ended(w.watcher.RunQueue(running)) })
		loops.Go(func() { w.ended(w.watcher.RunStatus(running)) })
		defer func() {
			stop()
			loops.Wait()
			w.Pass(time.Second) // lets the simulator detect the end of its clients
		}()
		w.Pass(time.Minute)
		w.forget()
		test(w)
	})
}

func (w *world) ended(err error) {
	if err != nil {
		w.Errorf("a loop returned: %v", err)
	}
}

func (w *world) options() Options {
	return Options{Queue: "interruptions", Claims: w.find, Act: w.carryOut, May: w.judge, Runs: w.runs, Volumes: w.volumes,
		SoldOut: func(_ context.Context, o Offering) { w.locked(func() { w.sold = append(w.sold, o) }) },
		Observer: Observer{
			Received:  func(k Kind) { w.locked(func() { w.received[k]++ }) },
			Foreign:   func(k Kind) { w.locked(func() { w.foreign[k]++ }) },
			Deleted:   func(n int) { w.locked(func() { w.deleted += n }) },
			Waited:    func(d time.Duration) { w.locked(func() { w.waited = append(w.waited, d) }) },
			Unhealthy: func(c Category) { w.locked(func() { w.unhealthy[c]++ }) },
			Called:    func(c call.Call) { w.locked(func() { w.calls[c.Operation+" "+c.Code]++ }) },
			Failed:    func(k Kind, err error) { w.locked(func() { w.failed = append(w.failed, string(k)+": "+err.Error()) }) },
			Held:      func(h Held) { w.locked(func() { w.held = h }) },
			Spoilt:    func(error) { w.locked(func() { w.spoilt++ }) },
			Trouble: func(part string, err error) {
				w.locked(func() { w.troubles = append(w.troubles, fmt.Sprintf("%s: %v", part, err)) })
			},
		}}
}

func (w *world) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// runs implements Options.Runs.
func (w *world) runs(_ context.Context, instance string) (bool, error) {
	at := slices.IndexFunc(w.Instances(), func(i awssim.Instance) bool { return i.ID == instance })
	return at >= 0 && slices.Contains([]string{"pending", "running"}, w.Instances()[at].State), nil
}

// find implements Options.Claims.
func (w *world) find(_ context.Context, instances []string) (map[string]Claim, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]Claim{}
	for _, id := range instances {
		if c, ok := w.claims[id]; ok {
			if w.stale {
				c.Deleting, c.Deadline = false, time.Time{}
			}
			found[id] = c
		}
	}
	return found, nil
}

// judge implements Options.May: all may be replaced unless the test says otherwise.
func (w *world) judge(_ context.Context, failing []Decision) (map[string]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.may != nil {
		return w.may(failing)
	}
	may := map[string]bool{}
	for _, d := range failing {
		may[d.Instance] = true
	}
	return may, nil
}

// carryOut implements Options.Act.
func (w *world) carryOut(_ context.Context, d Decision) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range d.Events {
		w.events[d.Instance+" "+e.Reason]++
	}
	if w.refuse > 0 && !d.Idle() {
		w.refuse--
		return errors.New("the API server is away")
	}
	c := w.claims[d.Instance]
	if d.Replace {
		if !w.replaced[d.Instance].IsZero() {
			w.Errorf("the claim of %s is replaced twice", d.Instance)
		}
		c.Deleting = true
		w.replaced[d.Instance] = time.Now()
	}
	if !d.Deadline.IsZero() {
		c.Deadline = d.Deadline
		w.deadlines[d.Instance] = d.Deadline
	}
	w.claims[d.Instance] = c
	return nil
}

// launch launches machines, and creates a claim for each.
func (w *world) launch(ctx context.Context, n int, capacityType string) {
	w.Helper()
	image, err := w.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id")})
	w.Must(err)
	_, err = w.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("nodes"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: image.Parameter.Value, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\n")))}})
	w.Must(err)
	subnets := w.Subnets()
	at := slices.IndexFunc(subnets, func(s awssim.Subnet) bool { return s.Zone == "us-east-1a" && s.Tags["karpenter.sh/discovery"] != "" })
	out, err := w.EC2.CreateFleet(ctx, &ec2.CreateFleetInput{Type: ec2types.FleetTypeInstant,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(int32(n)),
			DefaultTargetCapacityType: ec2types.DefaultTargetCapacityType(capacityType)},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("nodes"),
				Version: aws.String("$Latest")},
			Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: &subnets[at].ID}}}}})
	w.Must(err)
	for _, i := range out.Instances {
		w.ids = append(w.ids, i.InstanceIds...)
	}
	slices.Sort(w.ids)
	if len(w.ids) != n {
		w.Fatalf("%d machines are launched, want %d: %v", len(w.ids), n, out.Errors)
	}
	for k, id := range w.ids {
		w.claims[id] = Claim{Name: fmt.Sprintf("claim-%d", k), UID: fmt.Sprintf("uid-%d", k), Type: "m5.large",
			Zone: "us-east-1a", CapacityType: capacityType}
	}
}

// forget resets the counters, which include the messages about the launch.
func (w *world) forget() {
	w.locked(func() {
		clear(w.received)
		clear(w.foreign)
		clear(w.calls)
		w.deleted, w.waited = 0, nil
	})
}

// seen returns a copy of the results, for access without a lock.
func (w *world) seen() *world {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &world{replaced: maps.Clone(w.replaced), deadlines: maps.Clone(w.deadlines), sold: slices.Clone(w.sold),
		received: maps.Clone(w.received), foreign: maps.Clone(w.foreign),
		unhealthy: maps.Clone(w.unhealthy), deleted: w.deleted, spoilt: w.spoilt, waited: slices.Clone(w.waited),
		failed: slices.Clone(w.failed), troubles: slices.Clone(w.troubles), calls: maps.Clone(w.calls),
		events: maps.Clone(w.events), held: w.held}
}
