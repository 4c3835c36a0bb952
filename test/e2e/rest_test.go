package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestShrunkFleet scales six Deployments from 58 pods to 22. With the default settings of a pool, consolidation makes the
// fleet at most 5% dearer than the nodes that would be launched for the same pods.
func TestShrunkFleet(t *testing.T) {
	const dearer, limit = 1.05, 5 * time.Minute
	s := onShared(t, "rest")
	workloads := []shrunk{
		{"a", "700m", 12, 4}, {"b", "1200m", 10, 3}, {"c", "500m", 8, 3}, {"d", "300m", 12, 6}, {"e", "1500m", 8, 2}, {"f", "900m", 8, 4},
	}
	for _, w := range workloads {
		s.create(w.deployment("rest", w.first))
	}
	for _, w := range workloads {
		await(t, 2*patience, "the pods of "+w.name+" to run", s.running(w.name, w.first))
	}
	start, fresh := s.price(), s.fresh(workloads)
	claims := s.ledger.count("rest").claimsEver
	began := time.Now()
	for _, w := range workloads {
		s.scale(w.name, w.last)
	}
	last := start
	await(t, limit, "the fleet to cost as much as a fresh one", func(ctx context.Context) error {
		for _, w := range workloads {
			if err := s.running(w.name, w.last)(ctx); err != nil {
				return err
			}
		}
		now := s.price()
		if now != last {
			t.Logf("%4.0f s: %.3f USD/h", time.Since(began).Seconds(), now)
			last = now
		}
		if now > fresh*dearer {
			return fmt.Errorf("it costs %.4f USD per hour, a fresh one %.4f", now, fresh)
		}
		return s.settled(ctx)
	})
	t.Logf("%.3f USD/h before, %.3f after %.0f s, fresh %.3f; %d nodes launched meanwhile",
		start, s.price(), time.Since(began).Seconds(), fresh, s.ledger.count("rest").claimsEver-claims)
}

// shrunk is a Deployment with its numbers of pods at first and at last.
type shrunk struct {
	name, cpu   string
	first, last int
}

func (w shrunk) deployment(namespace string, replicas int) *appsv1.Deployment {
	labels, count := map[string]string{"app": w.name}, int32(replicas) //nolint:gosec // small
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64),
					NodeSelector:                  map[string]string{"e2e.example.org/case": namespace},
					Containers: []corev1.Container{{Name: "pause", Image: "pause:3.10", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(w.cpu), corev1.ResourceMemory: resource.MustParse("256Mi")},
					}}},
				},
			},
		},
	}
}

// fresh returns the price, in USD per hour, of the nodes that would be launched for the last pods of the workloads.
func (s *stage) fresh(workloads []shrunk) float64 {
	s.t.Helper()
	var objects bytes.Buffer
	for _, w := range workloads {
		text, err := yaml.Marshal(w.deployment(s.name, w.last))
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&objects, "---\n%s", text)
	}
	command := exec.CommandContext(s.t.Context(), plugin, "simulate", "-f", filepath.Join("testdata", s.name+".yaml"), "-f", "-", "-o", "json")
	command.Stdin, command.Stderr = &objects, os.Stderr
	output, err := command.Output()
	if err != nil {
		s.t.Fatalf("simulate: %v", err)
	}
	var answer struct {
		PricePerHour  float64
		Unschedulable []any
	}
	if err := json.Unmarshal(output, &answer); err != nil || len(answer.Unschedulable) > 0 {
		s.t.Fatalf("the answer of simulate is %s: %v", output, err)
	}
	return answer.PricePerHour
}
