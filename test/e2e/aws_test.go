package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
)

// awsWorld is a cluster whose machines are instances of a simulated AWS. The controller runs with
// --cloud-provider=aws.
type awsWorld struct {
	*cluster
	name     string // of the EKS cluster
	sim      *awssim.Cloud
	kubelets *kubelet.Kubelets
	log      string
}

// awsKey is the access key with which the controller signs.
const awsKey = "AKIAE2E"

// startAWS starts a separate cluster with a simulated AWS beside it, and applies the class that all cases share.
func startAWS(t *testing.T) *awsWorld {
	t.Helper()
	return startAWSFor(t, "sandbox")
}

// startAWSFor is like startAWS, for an EKS cluster of another name, and with more IAM roles.
func startAWSFor(t *testing.T, name string, roles ...string) *awsWorld {
	t.Helper()
	w := &awsWorld{cluster: ownClusterOf(t, "aws"), name: name}
	config, err := w.sandbox.Config()
	if err != nil {
		t.Fatal(err)
	}
	w.kubelets = &kubelet.Kubelets{
		Client:  w.Client,
		Cluster: kubelet.Cluster{Name: name, Endpoint: config.Host, Authority: base64.StdEncoding.EncodeToString(config.CAData)},
		Log:     func(text string) { fmt.Fprintln(os.Stderr, "kubelets:", text) },
	}
	w.sim, err = awssim.New(awssim.Options{
		Roles: roles, Queue: "interruptions", Seed: 7, Lag: 500 * time.Millisecond, Hook: w.kubelets,
		Cluster: awssim.Cluster{Name: name, Endpoint: config.Host, CA: string(config.CAData), Version: fmt.Sprintf("1.%d", w.minor(t))},
		Timing:  awssim.Timing{Pending: 200 * time.Millisecond, Boot: 300 * time.Millisecond, ShuttingDown: 300 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- w.sim.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the simulated AWS: %v", err)
		}
	})
	w.environment = []string{"AWS_ENDPOINT_URL=http://" + listener.Addr().String(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=" + awsKey,
		"AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true"}
	w.log = filepath.Join(filepath.Dir(w.sandbox.Kubeconfig()), "karpenter.log")
	return w
}

// run starts the controller.
func (w *awsWorld) run(t *testing.T, flags ...string) {
	t.Helper()
	w.runController(t, w.log, slices.Concat([]string{"--cloud-provider=aws", "--cluster-name=" + w.name, "--interruption-queue=interruptions"}, quickTimers, flags)...)
}

// stage returns the environment of a case: it has a pool with the name of the case, and a Deployment "app". All cases
// share the class.
func (w *awsWorld) stage(t *testing.T, name string) *awsStage {
	t.Helper()
	s := &awsStage{stage: newStage(t, w.cluster, name), world: w}
	content, err := os.ReadFile(filepath.Join("testdata", "aws-case.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(filepath.Dir(w.log), name+".yaml")
	if err := os.WriteFile(own, bytes.ReplaceAll(content, []byte("aws-case"), []byte(name)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.apply(own)
	return s
}

// stageOf is like stage, with a class of the name of the case, which is the shared one with changes.
func (w *awsWorld) stageOf(t *testing.T, name string, change func(*awsv1.EC2NodeClassSpec)) *awsStage {
	t.Helper()
	shared := &awsv1.EC2NodeClass{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "default"}, shared); err != nil {
		t.Fatal(err)
	}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shared.Spec}
	change(&class.Spec)
	if err := w.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Delete(context.WithoutCancel(t.Context()), class); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	s := w.stage(t, name)
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}},
		fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeClassRef":{"name":%q}}}}}`, name))
	return s
}

// template changes the template of the pods.
func (s *awsStage) template(merge string) {
	s.t.Helper()
	s.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "app"}}, `{"spec":{"template":`+merge+`}}`)
}

// apart makes pods need a node each.
func (s *awsStage) apart() {
	s.t.Helper()
	s.template(`{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
		{"labelSelector":{"matchLabels":{"app":"app"}},"topologyKey":"kubernetes.io/hostname"}]}}}}`)
}

// instanceOf returns the instance of a node.
func (s *awsStage) instanceOf(node *corev1.Node) awssim.Instance {
	s.t.Helper()
	for _, i := range s.instances() {
		if "aws:///"+i.Zone+"/"+i.ID == node.Spec.ProviderID {
			return i
		}
	}
	s.t.Fatalf("node %s has the provider ID %q, which is no running instance", node.Name, node.Spec.ProviderID)
	return awssim.Instance{}
}

// require replaces the requirements of the pool.
func (s *awsStage) require(requirements ...karpv1.Requirement) {
	s.t.Helper()
	text, err := json.Marshal(requirements)
	if err != nil {
		s.t.Fatal(err)
	}
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, fmt.Sprintf(`{"spec":{"template":{"spec":{"requirements":%s}}}}`, text))
}

func among(key string, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: karpv1.OperatorIn, Values: values}
}

// awsStage is a stage whose machines are instances.
type awsStage struct {
	*stage
	world *awsWorld
}

// all returns the instances that were ever launched for the pool of the case.
func (s *awsStage) all() []awssim.Instance {
	return slices.DeleteFunc(s.world.sim.Instances(), func(i awssim.Instance) bool { return i.Tags["karpenter.sh/nodepool"] != s.name })
}

// instances returns those that are pending or running.
func (s *awsStage) instances() []awssim.Instance {
	return slices.DeleteFunc(s.all(), func(i awssim.Instance) bool { return i.State != "pending" && i.State != "running" })
}

// empty fails until no claim, node or instance of the case exists.
func (s *awsStage) empty(context.Context) error {
	c, running := s.ledger.count(s.name), len(s.instances())
	if c.claims+c.nodes+running > 0 {
		return fmt.Errorf("%d claims, %d nodes and %d instances are there", c.claims, c.nodes, running)
	}
	return nil
}

// owned fails until every running instance is the machine of one claim, and every claim that is not deleted has one.
func (s *awsStage) owned(context.Context) error {
	owners := map[string]string{}
	for _, e := range s.ledger.claimsOf(s.name) {
		if e.gone || e.object.DeletionTimestamp != nil {
			continue
		}
		id := e.object.Status.ProviderID
		if other := owners[id]; other != "" || id == "" {
			return fmt.Errorf("claim %s has the machine %q, which is that of %q too", e.object.Name, id, other)
		}
		owners[id] = e.object.Name
	}
	running := s.instances()
	for _, i := range running {
		if owners["aws:///"+i.Zone+"/"+i.ID] == "" {
			return fmt.Errorf("instance %s, launched %s, belongs to no claim: %v", i.ID, i.Launched.Format(time.TimeOnly), i.Tags)
		}
	}
	if len(running) != len(owners) {
		return fmt.Errorf("%d instances run for %d claims", len(running), len(owners))
	}
	return nil
}

// boughtOnce waits until every instance has a claim. It fails if more instances were ever launched than there were
// claims.
func (s *awsStage) boughtOnce() {
	s.t.Helper()
	await(s.t, patience, "every instance to belong to a claim", s.owned)
	if bought, claims := len(s.all()), s.ledger.count(s.name).claimsEver; bought > claims {
		s.t.Errorf("%d instances were launched for %d claims", bought, claims)
	}
	if refused := s.world.kubelets.Refused(); len(refused) > 0 {
		s.t.Errorf("instances did not join: %v", refused)
	}
}

// inject adds a fault to the cloud until the returned function is called.
func (s *awsStage) inject(fault awssim.Fault) (restore func()) {
	s.t.Helper()
	id, err := s.world.sim.Inject(fault)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.world.sim.Clear(id) })
	return func() { s.world.sim.Clear(id) }
}

// answered returns how often a call ended with the code since the counts were reset.
func (s *awsStage) answered(action, code string) int {
	n := 0
	for c, count := range s.world.sim.Calls() {
		if c.Action == action && c.Code == code {
			n += count
		}
	}
	return n
}

// TestAWS runs all cases on one cluster, one after the other: some of them make the cloud unavailable.
func TestAWS(t *testing.T) {
	t.Parallel()
	w := startAWS(t)
	(&stage{cluster: w.cluster, t: t, name: "aws"}).apply(filepath.Join("testdata", "aws-class.yaml"))
	w.price(t, "[]")
	w.run(t, "--webhook-port=0", "--enable-zonal-shift", // the API server cannot reach the webhook here, which the doctor would report
		"--price-file="+w.prices())
	for _, test := range []struct {
		name string
		run  func(*testing.T, *awsWorld)
		core bool // included in the core set
	}{
		{"scale up and down", testAWSScale, true},
		{"older manifests", testAWSOlder, true},
		{"tools", testAWSTools, true},
		{"cheapest pools are sold out", testAWSSoldOut, true},
		{"half the fleet is interrupted", testAWSInterrupted, true},
		{"a rebalance recommendation", testAWSRebalance, false},
		{"a zone is shifted", testAWSShifted, true},
		{"reserved machines", testAWSReserved, false},
		{"a capacity block ends", testAWSBlockEnds, false},
		{"pods spread over partitions", testAWSPartitions, false},
		{"a spread placement group is full", testAWSSpread, false},
		{"a placement group that does not exist", testAWSNoPlacementGroup, false},
		{"own prices", testAWSPrices, false},
		{"Windows", testAWSWindows, false},
		{"subnets are full", testAWSFullSubnets, false},
		{"answers are lost", testAWSLostAnswers, false},
		{"throttled", testAWSThrottled, false},
		{"down", testAWSDown, false},
		{"credentials have expired", testAWSExpired, false},
		{"two controllers", testAWSTwoControllers, false},
		{"killed while launching", testAWSKilled, false},
		{"left by Karpenter", testAWSLeft, false},
	} {
		if test.core || effort(0, 1, 1) > 0 {
			t.Run(test.name, func(t *testing.T) { test.run(t, w) })
		}
	}
}

// testAWSScale checks that pods get instances with the properties of their user data, and that no instance remains.
func testAWSScale(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-scale")
	s.scale("app", 12)
	await(t, patience, "all pods to run", s.running("app", 12))
	s.boughtOnce()
	for _, pod := range s.pods("app") {
		node := s.node(pod)
		for label, want := range map[string]string{
			karpv1.LabelRegistered: "true", "karpenter.sh/nodepool": "aws-scale", "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.k8s.aws/instance-tenancy": "default",
		} {
			if got := node.Labels[label]; got != want {
				t.Errorf("node %s has the label %s=%q, want %q", node.Name, label, got, want)
			}
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
