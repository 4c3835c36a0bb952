package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim/kubelet"
)

// awsWorld is a cluster whose machines are instances of a simulated AWS. The controller runs with --cloud-provider=aws.
type awsWorld struct {
	*cluster
	sim      *awssim.Cloud
	kubelets *kubelet.Kubelets
	log      string
}

// awsKey is the access key that the controller signs with.
const awsKey = "AKIAE2E"

// startAWS starts a cluster of its own with a simulated AWS beside it, and applies the class that all cases share.
func startAWS(t *testing.T) *awsWorld {
	t.Helper()
	w := &awsWorld{cluster: ownCluster(t)}
	config, err := w.sandbox.Config()
	if err != nil {
		t.Fatal(err)
	}
	w.kubelets = &kubelet.Kubelets{
		Client:  w.Client,
		Cluster: kubelet.Cluster{Name: "sandbox", Endpoint: config.Host, Authority: base64.StdEncoding.EncodeToString(config.CAData)},
		Log:     func(text string) { fmt.Fprintln(os.Stderr, "kubelets:", text) },
	}
	w.sim, err = awssim.New(awssim.Options{
		Cluster: awssim.Cluster{Endpoint: config.Host, CA: string(config.CAData)}, Queue: "interruptions", Seed: 7, Lag: 500 * time.Millisecond, Hook: w.kubelets,
		Timing: awssim.Timing{Pending: 200 * time.Millisecond, Boot: 300 * time.Millisecond, ShuttingDown: 300 * time.Millisecond},
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
	w.runController(t, w.log, slices.Concat([]string{"--cloud-provider=aws", "--cluster-name=sandbox", "--interruption-queue=interruptions"}, quickTimers, flags)...)
}

// stage is where a case plays; the class is there and ready for all of them.
func (w *awsWorld) stage(t *testing.T, name string) *awsStage {
	t.Helper()
	return &awsStage{stage: newStage(t, w.cluster, name), world: w}
}

// awsStage is a stage whose machines are instances.
type awsStage struct {
	*stage
	world *awsWorld
}

// instances are those that run, or are about to, for the pools of the case.
func (s *awsStage) instances() []awssim.Instance {
	return slices.DeleteFunc(s.world.sim.Instances(), func(i awssim.Instance) bool {
		return i.State != "pending" && i.State != "running" || i.Tags["karpenter.sh/nodepool"] != s.name
	})
}

// empty fails until no claim, node or instance of the case is there.
func (s *awsStage) empty(context.Context) error {
	c, running := s.ledger.count(s.name), len(s.instances())
	if c.claims+c.nodes+running > 0 {
		return fmt.Errorf("%d claims, %d nodes and %d instances are there", c.claims, c.nodes, running)
	}
	return nil
}

// boughtOnce fails if two claims share an instance, if an instance runs for no claim, or if a claim has none.
func (s *awsStage) boughtOnce() {
	s.t.Helper()
	owners := map[string]string{}
	for _, e := range s.ledger.claimsOf(s.name) {
		if e.gone || e.object.Status.ProviderID == "" {
			continue
		}
		if other := owners[e.object.Status.ProviderID]; other != "" {
			s.t.Errorf("claims %s and %s share machine %s", other, e.object.Name, e.object.Status.ProviderID)
		}
		owners[e.object.Status.ProviderID] = e.object.Name
	}
	for _, i := range s.instances() {
		if owners["aws:///"+i.Zone+"/"+i.ID] == "" {
			s.t.Errorf("instance %s, launched %s, belongs to no claim: %v", i.ID, i.Launched.Format(time.TimeOnly), i.Tags)
		}
	}
}

// TestAWS plays all cases on one cluster, one after the other: some of them take the cloud away.
func TestAWS(t *testing.T) {
	t.Parallel()
	w := startAWS(t)
	(&stage{cluster: w.cluster, t: t, name: "aws"}).apply(filepath.Join("testdata", "aws-class.yaml"))
	w.run(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *awsWorld)
	}{
		{"scale up and down", testAWSScale},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

// Pods get instances that are as their user data says, and leave none behind.
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
	if refused := w.kubelets.Refused(); len(refused) > 0 {
		t.Errorf("instances did not join: %v", refused)
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
