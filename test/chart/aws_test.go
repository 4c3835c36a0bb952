package chart

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
)

// onAWS returns the values of the installation with EC2 nodes.
func onAWS() values {
	return values(setter(installed()).set("settings.cloudProvider", "aws").set("settings.clusterName", "sandbox").set("settings.interruptionQueue", "interruptions"))
}

// runAWS runs the same installation with the AWS provider and a simulated AWS.
func (w *world) runAWS(t *testing.T) {
	w.upgradeTo(t, releaseName, mainChart, onAWS())
	stop := w.startController(t, onAWS(), "AWS_ENDPOINT_URL="+w.startAWS(t), "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=AKIACHART", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true")
	w.create(t, "aws.yaml")
	w.awaitBound(t, 2)
	w.olderOnAWS(t)
	w.scaleDown(t, "cloud")
	// The class is deleted last: the controller removes its finalizer once no object uses it.
	for _, object := range []struct{ version, kind, name string }{{"karpenter.sh/v1", "NodePool", "cloud"}, {"karpenter.k8s.aws/v1", "EC2NodeClass", "default"}} {
		gone := &unstructured.Unstructured{}
		gone.SetAPIVersion(object.version)
		gone.SetKind(object.kind)
		gone.SetName(object.name)
		if err := w.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		await(t, object.kind+" to be gone", func(ctx context.Context) error {
			err := w.Get(ctx, types.NamespacedName{Name: object.name}, gone.DeepCopy())
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there (%w)", err)
		})
	}
	stop()
}

// startAWS serves a simulated AWS whose instances become nodes of the sandbox, and returns its address.
func (w *world) startAWS(t *testing.T) string {
	t.Helper()
	kubelets := &kubelet.Kubelets{
		Client:  w.Client,
		Cluster: kubelet.Cluster{Name: "sandbox", Endpoint: w.config.Host, Authority: base64.StdEncoding.EncodeToString(w.config.CAData)},
		Log:     func(text string) { fmt.Fprintln(os.Stderr, "kubelets:", text) },
	}
	sim, err := awssim.New(awssim.Options{
		Cluster: awssim.Cluster{Endpoint: w.config.Host, CA: string(w.config.CAData)}, Queue: "interruptions", Seed: 7, Hook: kubelets,
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
	go func() { served <- sim.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the simulated AWS: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}
