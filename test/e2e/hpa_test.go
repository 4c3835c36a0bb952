package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestHorizontalPodAutoscaler checks that nodes are launched and removed with the load when Kubernetes'
// HorizontalPodAutoscaler sets the replicas of a Deployment by the CPU usage of its pods.
func TestHorizontalPodAutoscaler(t *testing.T) {
	only(t)
	// As often and as early as possible: by default it syncs every 15 s, and ignores pods that have just started.
	c := ownClusterOf(t, "kwok", "--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
		"--horizontal-pod-autoscaler-initial-readiness-delay=0s", "--horizontal-pod-autoscaler-downscale-stabilization=0s")
	s := newStage(t, c, "crash")
	load := startMetrics(t, s)
	c.runController(t, filepath.Join(artifacts, "hpa.log"), quickTimers...)
	s.scale("app", 1)
	await(t, patience, "the first pod to run", s.running("app", 1))
	s.create(&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "app"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "app"},
			MinReplicas:    new(int32(1)), MaxReplicas: 30,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
			}}},
		},
	})
	// A pod requests 1 CPU, the target is half of it; three pods fill a node.
	for _, step := range []struct {
		load       int64 // millicores
		pods, most int   // most: maximum number of nodes; fewer cannot hold the pods
	}{{6_000, 12, 4}, {12_000, 24, 8}, {3_000, 6, 4}, {500, 1, 1}} {
		load.Store(step.load)
		await(t, patience, fmt.Sprintf("%d pods at a load of %d millicores", step.pods, step.load), s.running("app", step.pods))
		await(t, patience, "the nodes to follow", func(context.Context) error {
			if now := s.ledger.count(s.name); now.nodes > step.most || now.claims != now.nodes {
				return fmt.Errorf("%d claims and %d nodes are there, want at most %d", now.claims, now.nodes, step.most)
			}
			return nil
		})
	}
}

// startMetrics is a stand-in for the metrics server. It serves metrics.k8s.io through the API server's aggregation
// layer, and reports that the running pods of the case's Deployment share a load, which is returned, in millicores.
func startMetrics(t *testing.T, s *stage) *atomic.Int64 {
	t.Helper()
	load := &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": []any{
			map[string]any{"name": "pods", "kind": "PodMetrics", "namespaced": true, "verbs": []string{"get", "list"}}}}
		if strings.HasSuffix(r.URL.Path, "/namespaces/"+s.name+"/pods") {
			answer = s.usage(load.Load())
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Errorf("answering %s: %v", r.URL, err)
		}
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// A Service may not have a loopback address, but a name for it.
	s.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "metrics"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}})
	service := &unstructured.Unstructured{}
	text := `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1beta1.metrics.k8s.io"},"spec":{
		"group":"metrics.k8s.io","version":"v1beta1","groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,
		"service":{"namespace":"` + s.name + `","name":"metrics","port":` + port + `}}}`
	if err := json.Unmarshal([]byte(text), &service.Object); err != nil {
		t.Fatal(err)
	}
	s.create(service)
	await(t, patience, "the metrics to be served", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		if text := fmt.Sprint(service.Object["status"]); !strings.Contains(text, "status:True type:Available") {
			return fmt.Errorf("its status is %s", text)
		}
		return nil
	})
	return load
}

// usage returns the PodMetricsList of the running pods, which share a load in millicores.
func (s *stage) usage(load int64) map[string]any {
	var names []string
	for _, pod := range s.pods("app") {
		if pod.Status.Phase == corev1.PodRunning {
			names = append(names, pod.Name)
		}
	}
	items := []any{}
	for _, name := range names {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": name, "namespace": s.name}, "timestamp": time.Now().UTC().Format(time.RFC3339), "window": "1s",
			"containers": []any{map[string]any{"name": "pause", "usage": map[string]any{"cpu": fmt.Sprintf("%dm", load/int64(len(names))), "memory": "100Mi"}}},
		})
	}
	return map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{}, "items": items}
}
