package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// TestControllerRuns checks the verb on a real API server. Without CRDs it ends with a clear error. With them it
// becomes ready, serves metrics and no profiles, and ends with exit code 0 on request. Definitions of older kinds may
// be installed later.
func TestControllerRuns(t *testing.T) {
	s := sandboxtest.StartSandbox(t, sandboxtest.Options{})
	metrics, health := freePort(t), freePort(t)
	arguments := []string{"controller", "--cloud-provider=kwok", "--kubeconfig=" + s.Kubeconfig(), "--log-level=error",
		"--timers=class-recheck=100ms", "--metrics-port=" + strconv.Itoa(metrics), "--health-probe-port=" + strconv.Itoa(health)}

	code, stderr := runVerb(t.Context(), arguments)
	wantOneLine(t, "without CRDs", stderr, "does not serve karpenter.sh/v1; install the CRDs first")
	if code != 1 {
		t.Errorf("without CRDs: exit code %d, want 1", code)
	}

	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	older := func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Names.Kind == karpv1alpha5.Kind }
	if err := sandbox.Install(t.Context(), config, slices.DeleteFunc(slices.Clone(definitions), older)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan string, 1)
	go func() {
		code, stderr := runVerb(ctx, arguments)
		ended <- strconv.Itoa(code) + " " + stderr
	}()
	eventually(t, "the controller is ready", func() bool { return fetch("http://127.0.0.1:"+strconv.Itoa(health)+"/readyz") == "ok" })
	if got := fetch("http://127.0.0.1:" + strconv.Itoa(health) + "/healthz"); got != "ok" {
		t.Errorf("/healthz: %q", got)
	}
	at := "http://127.0.0.1:" + strconv.Itoa(metrics)
	eventually(t, "the leader has taken up its work", func() bool { return strings.Contains(fetch(at+"/metrics"), "\nkarpenter_cluster_state_synced 1\n") })
	got := fetch(at + "/metrics")
	for _, series := range []string{"karpenter_build_info{", "karpenter_cluster_state_unsynced_time_seconds 0", "client_go_request_total{",
		`client_go_request_duration_seconds_count{group="coordination.k8s.io",kind="leases"`, "rest_client_requests_total{"} {
		if !strings.Contains(got, series) {
			t.Errorf("/metrics has no %s", series)
		}
	}
	if got := fetch(at + "/debug/pprof/"); !strings.Contains(got, "404") {
		t.Errorf("/debug/pprof/ is served although it is not enabled: %.100q", got)
	}
	otherProviderIsTold(t, s)
	exemplarsAreServed(t, at+"/metrics")
	olderKindsComeLater(t, config, definitions)
	stop()
	if got := <-ended; got != "0 " {
		t.Errorf("it ended with %q", got)
	}
}

// otherProviderIsTold checks that an AWS pool that was ready once is reported as belonging to no provider, and that
// the verbs then report this, not that a node is being launched.
func otherProviderIsTold(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "waiting"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for _, object := range []client.Object{pool, pod} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	base := pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := api.Status().Patch(t.Context(), pod, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	earlier := pool.DeepCopy()
	pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
	if err := api.Status().Patch(t.Context(), pool, client.MergeFrom(earlier)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pool is reported as foreign", func() bool {
		return api.Get(t.Context(), client.ObjectKeyFromObject(pool), pool) == nil && pool.Condition(karpv1.ConditionNodeClassReady).IsFalse()
	})
	const why = "node classes of the kind EC2NodeClass.karpenter.k8s.aws are not of the cloud provider of the running controller (kwok)"
	if got := pool.Condition(karpv1.ConditionNodeClassReady).Message; !strings.Contains(got, why) {
		t.Errorf("the condition says %q, want %q", got, why)
	}
	for _, object := range []client.Object{pool, pod} {
		if err := api.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// exemplarsAreServed checks that clients that request OpenMetrics get exemplars that link a duration to a pass.
func exemplarsAreServed(t *testing.T, address string) {
	t.Helper()
	eventually(t, "a pass has an exemplar", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && passWithExemplar.Match(body)
	})
}

var passWithExemplar = regexp.MustCompile(`karpenter_scheduler_scheduling_duration_seconds_bucket\{controller="provisioner",le="[0-9.]+"\} \d+ # \{plan_id="[a-z2-7]{12}"\} `)

// olderKindsComeLater installs all definitions and waits until a Provisioner becomes a pool.
func olderKindsComeLater(t *testing.T, config *rest.Config, definitions []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := sandbox.Install(t.Context(), config, definitions); err != nil {
		t.Fatal(err)
	}
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "older"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a Provisioner has become a pool", func() bool {
		return api.Get(t.Context(), client.ObjectKey{Name: "older"}, &karpv1.NodePool{}) == nil
	})
}

func runVerb(ctx context.Context, arguments []string) (code int, stderr string) {
	root := newRootCommand()
	var buffer bytes.Buffer
	root.SetErr(&buffer)
	root.SetArgs(arguments)
	code = cli.Run(ctx, root)
	return code, buffer.String()
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// fetch returns the body at the address, or the error's text.
func fetch(address string) string {
	response, err := http.Get(address)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// eventually polls a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
