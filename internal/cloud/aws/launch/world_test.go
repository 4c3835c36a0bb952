package launch

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
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

const (
	cluster = awstest.Cluster
	zoneA   = "us-east-1a"
	zoneB   = "us-east-1b"
)

// world is a simulated cloud, the unmodified SDK with its retries, and the dependencies of a Launcher.
type world struct {
	*awstest.World
	sim         *awssim.Cloud
	ec2         *ec2.Client
	class       *awsv1.EC2NodeClass
	assortment  *instance.TypeSet
	prices      *instance.Prices
	unavailable *instance.Unavailable
	reserved    *instance.Reserved
	records     *records
	subnets     *oneSubnet
	calls       []call.Call
	mu          sync.Mutex
}

// in runs a test in a world.
func in(t *testing.T, opts awssim.Options, test func(ctx context.Context, w *world)) {
	t.Helper()
	awstest.Run(t, opts, func(ctx context.Context, aws *awstest.World) {
		cfg := aws.Config.Copy()
		cfg.Retryer = nil // the SDK's own
		w := &world{World: aws, sim: aws.AWS, ec2: ec2.NewFromConfig(cfg), unavailable: instance.NewUnavailable(time.Now),
			records: &records{entries: map[types.UID]Record{}, names: map[types.UID]string{}}, subnets: &oneSubnet{},
			reserved: instance.NewReserved(time.Now)}
		w.makeClass(ctx)
		w.makeAssortment()
		w.sim.ResetCalls()
		test(ctx, w)
		w.pass(2 * launchTimeout) // lets pending work finish
	})
}

func (w *world) must(err error) {
	w.Helper()
	w.Must(err)
}

func (w *world) pass(d time.Duration) { w.Pass(d) }

func (w *world) makeClass(ctx context.Context) {
	profile, role := "nodes", "KarpenterNodeRole-"+cluster
	_, err := w.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &profile})
	w.must(err)
	_, err = w.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
	w.must(err)
	out, err := w.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id")})
	w.must(err)
	groups, err := w.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
	w.must(err)
	w.class = &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class"},
		Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			Tags: map[string]string{"team": "a"}},
		Status: awsv1.EC2NodeClassStatus{InstanceProfile: profile,
			AMIs: []awsv1.AMI{{ID: *out.Parameter.Value,
				Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: "In", Values: []string{"amd64"}}}}}},
	}
	for _, s := range w.sim.Subnets() {
		if s.Tags["karpenter.sh/discovery"] != "" {
			w.class.Status.Subnets = append(w.class.Status.Subnets, awsv1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
		}
	}
	for _, g := range groups.SecurityGroups {
		if tagMap(g.Tags)["karpenter.sh/discovery"] != "" {
			w.class.Status.SecurityGroups = append(w.class.Status.SecurityGroups, awsv1.SecurityGroup{ID: *g.GroupId})
		}
	}
}

// testTypes is a catalog of a few types, read once.
var testTypes = sync.OnceValues(func() ([]catalog.Type, error) {
	all := catalog.Load()
	var few []catalog.Type
	for _, name := range []string{"m5.large", "m5.xlarge", "m6i.large", "c5.large", "g4dn.xlarge"} {
		t, ok := all.Type(name)
		if !ok {
			return nil, fmt.Errorf("no type %s", name)
		}
		few = append(few, *t)
	}
	return few, nil
})

func (w *world) makeAssortment() {
	few, err := testTypes()
	w.must(err)
	class := instance.ClassOf(w.class)
	w.assortment, err = instance.NewTypeSet(few, &class, &instance.Settings{Region: "us-east-1", MemoryOverheadPercent: 0.075}, nil)
	w.must(err)
	w.prices = instance.NewPrices("us-east-1", catalog.Load())
}

// types returns the current types of the class.
func (w *world) types() []cloud.InstanceType {
	return w.assortment.Catalog(&instance.Market{OnDemand: w.prices.OnDemand, Spot: w.prices.Spot, Unavailable: w.unavailable.Until,
		Left: w.reserved.Left})
}

// launcher returns a new process with the same records.
func (w *world) launcher(change ...func(*Options)) *Launcher {
	o := Options{EC2: w.ec2, RecordStore: w.records, Subnets: w.subnets, Unavailable: w.unavailable, Reserved: w.reserved,
		ClusterName: cluster,
		Region:      "us-east-1", Observe: func(c call.Call) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, c)
		}}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

// order returns an order for a claim of m5.large on demand in zone A. requirements replace these.
func (w *world) order(name string, requirements ...karpv1.Requirement) *Order {
	if len(requirements) == 0 {
		requirements = []karpv1.Requirement{oneOf(corev1.LabelInstanceTypeStable, "m5.large"),
			oneOf(karpv1.LabelCapacityType, "on-demand"), oneOf(corev1.LabelTopologyZone, zoneA)}
	}
	return &Order{
		Claim: &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{karpv1.LabelNodePool: "pool"}},
			Spec: karpv1.NodeClaimSpec{Requirements: requirements}},
		Class: w.class, Types: w.types(), Image: w.assortment.Image,
		Cluster: userdata.Cluster{Name: cluster, Endpoint: "https://cluster", CABundle: base64.StdEncoding.EncodeToString([]byte("ca")),
			ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
	}
}

func oneOf(key string, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: "In", Values: values}
}

func names(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("claim-%03d", i))
	}
	return list
}

// result is the result of a launch.
type result struct {
	machine *cloud.Machine
	err     error
}

// launch launches for all names at once and waits for them.
func (w *world) launch(ctx context.Context, l *Launcher, list ...string) map[string]result {
	results := make([]result, len(list))
	var group sync.WaitGroup
	for i, name := range list {
		o := w.order(name)
		group.Go(func() { results[i].machine, results[i].err = l.Launch(ctx, o) })
	}
	group.Wait()
	byName := map[string]result{}
	for i, name := range list {
		byName[name] = results[i]
	}
	return byName
}

// launchUntil launches repeatedly until every claim has its machine, like a controller.
func (w *world) launchUntil(ctx context.Context, l *Launcher, list ...string) map[string]string {
	w.Helper()
	machines := map[string]string{}
	for range 10 {
		for name, r := range w.launch(ctx, l, list...) {
			if r.err == nil {
				machines[name] = r.machine.ProviderID
			} else {
				w.Logf("launching %s: %v", name, r.err)
			}
		}
		if len(machines) == len(list) {
			return machines
		}
		w.pass(10 * time.Second)
	}
	w.Fatalf("%d of %d claims have a machine", len(machines), len(list))
	return nil
}

// boughtOnce checks that the claims have different machines, and that the cloud runs no others.
func (w *world) boughtOnce(machines map[string]string) {
	w.Helper()
	ids := map[string]string{}
	for claim, machine := range machines {
		if other, twice := ids[machine]; twice {
			w.Errorf("claims %s and %s share %s", claim, other, machine)
		}
		ids[machine] = claim
	}
	alive := w.alive()
	if len(alive) != len(machines) {
		w.Errorf("the cloud runs %d instances for %d claims", len(alive), len(machines))
	}
	for _, i := range alive {
		if ids[providerID(i.Zone, i.ID)] == "" {
			w.Errorf("instance %s belongs to no claim: %v", i.ID, i.Tags)
		}
	}
}

func (w *world) alive() []awssim.Instance {
	return slices.DeleteFunc(w.sim.Instances(), func(i awssim.Instance) bool { return i.State == "terminated" || i.State == "shutting-down" })
}

func (w *world) count(operation, code string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		if c.Operation == operation && c.Code == code {
			n++
		}
	}
	return n
}

// records is an in-memory RecordStore that survives Launchers.
type records struct {
	mu      sync.Mutex
	entries map[types.UID]Record
	names   map[types.UID]string
	refuse  func(claim string, e Record) error
	gone    map[types.UID]bool
}

func (r *records) Read(_ context.Context, claim *karpv1.NodeClaim) (Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[claim.UID] {
		return Record{}, ErrNoRecord
	}
	return r.entries[claim.UID], nil
}

func (r *records) Replace(_ context.Context, claim *karpv1.NodeClaim, before, after Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		if err := r.refuse(claim.Name, after); err != nil {
			return err
		}
	}
	if r.gone[claim.UID] {
		return ErrNoRecord
	}
	if r.entries[claim.UID] != before {
		return ErrChanged
	}
	r.entries[claim.UID], r.names[claim.UID] = after, claim.Name
	return nil
}

func (r *records) Records(context.Context) (map[string]Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := map[string]Record{}
	for uid, e := range r.entries {
		entries[r.names[uid]] = e
	}
	return entries, nil
}

func (r *records) snapshot() map[types.UID]Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.entries)
}

// oneSubnet returns the first subnet of the class in a zone, and counts the reserved addresses.
type oneSubnet struct {
	mu    sync.Mutex
	aside map[string]int64
	room  map[string]int64
}

func (s *oneSubnet) Choose(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, subnet := range class.Status.Subnets {
		if subnet.Zone == zone {
			if s.aside == nil {
				s.aside = map[string]int64{}
			}
			s.aside[subnet.ID] += addresses
			return subnet.ID, true
		}
	}
	return "", false
}

func (s *oneSubnet) ChooseCrowded(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool) {
	return s.Choose(class, zone, addresses)
}

// Room implements Subnets. room is by zone; without an entry it is not known.
func (s *oneSubnet) Room(_ *awsv1.EC2NodeClass, zone string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, known := s.room[zone]
	return free, known
}

func (s *oneSubnet) Return(id string, addresses int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside[id] -= addresses
}

// process is EC2 and the records as one process uses them, until it is killed at a step. From then on, none of its
// operations has an effect.
type process struct {
	EC2API
	RecordStore
	mu    sync.Mutex
	steps int
	// dies is the step at which the process is killed, from 1. after is whether that step still takes effect.
	dies  int
	after bool
}

var errDead = errors.New("the process is dead")

// step reports whether the next step takes effect, and whether the process sees its result.
func (p *process) step() (happens, seen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps++
	return p.steps < p.dies || p.steps == p.dies && p.after, p.steps < p.dies
}

func take[Out any](p *process, do func() (Out, error)) (Out, error) {
	var none Out
	happens, seen := p.step()
	if !happens {
		return none, errDead
	}
	out, err := do()
	if !seen {
		return none, errDead
	}
	return out, err
}

func (p *process) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, o ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	return take(p, func() (*ec2.CreateFleetOutput, error) { return p.EC2API.CreateFleet(ctx, in, o...) })
}

func (p *process) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput,
	o ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	return take(p, func() (*ec2.CreateLaunchTemplateOutput, error) { return p.EC2API.CreateLaunchTemplate(ctx, in, o...) })
}

func (p *process) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return take(p, func() (*ec2.DescribeInstancesOutput, error) { return p.EC2API.DescribeInstances(ctx, in, o...) })
}

func (p *process) Replace(ctx context.Context, claim *karpv1.NodeClaim, before, after Record) error {
	_, err := take(p, func() (struct{}, error) { return struct{}{}, p.RecordStore.Replace(ctx, claim, before, after) })
	return err
}
