package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// testAWSOlder checks that a Provisioner and an AWSNodeTemplate launch instances with the properties of both, and
// remove them.
func testAWSOlder(t *testing.T, w *awsWorld) {
	s := &awsStage{stage: newStage(t, w.cluster, "aws-older"), world: w}
	content, err := os.ReadFile(filepath.Join("testdata", "aws-older-manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(filepath.Dir(w.log), "aws-older.yaml")
	if err := os.WriteFile(own, bytes.ReplaceAll(content, []byte("PROFILE"), []byte(s.anyProfile())), 0o600); err != nil {
		t.Fatal(err)
	}
	s.apply(own)
	t.Cleanup(func() {
		template := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "aws-older"}}
		if err := w.Delete(context.WithoutCancel(t.Context()), template); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	s.scale("app", 6)
	await(t, patience, "all pods to run", s.running("app", 6))
	s.boughtOnce()
	instances := s.instances()
	if len(instances) < 2 {
		t.Errorf("%d instances for 6 pods, and each takes 4 at most, with daemons", len(instances))
	}
	for _, i := range instances {
		if i.Tags["team"] != "older" {
			t.Errorf("instance %s has the tags %v", i.ID, i.Tags)
		}
	}
	for _, pod := range s.pods("app") {
		labels := s.node(pod).Labels
		if got := labels[karpv1.LabelCapacityType]; got != karpv1.CapacityTypeSpot {
			t.Errorf("node %s is %s", pod.Spec.NodeName, got)
		}
		if got := labels[awsv1.LabelInstanceCategory]; !slices.Contains([]string{"c", "m", "r"}, got) {
			t.Errorf("node %s is of category %s", pod.Spec.NodeName, got)
		}
	}
	template, provisioner := &awsv1alpha1.AWSNodeTemplate{}, &karpv1alpha5.Provisioner{}
	await(t, patience, "both to tell what they have become", func(ctx context.Context) error {
		if err := errors.Join(s.Get(ctx, client.ObjectKey{Name: "aws-older"}, template), s.Get(ctx, client.ObjectKey{Name: "aws-older"}, provisioner)); err != nil {
			return err
		}
		cpu := provisioner.Status.Resources.Cpu()
		if !template.StatusConditions().Root().IsTrue() || !provisioner.StatusConditions().Root().IsTrue() || len(template.Status.Subnets) == 0 || cpu.IsZero() {
			return errors.New("not yet")
		}
		return nil
	})
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// anyProfile returns the instance profile that was created for the class of the other cases.
func (s *awsStage) anyProfile() string {
	class := &awsv1.EC2NodeClass{}
	await(s.t, patience, "the class of the other cases to have a profile", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKey{Name: "default"}, class); err != nil {
			return err
		}
		if class.Status.InstanceProfile == "" {
			return errors.New("it has none")
		}
		return nil
	})
	return class.Status.InstanceProfile
}
