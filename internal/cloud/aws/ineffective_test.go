package aws

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Each setting without effect is found by its own check, and by none when it has an effect.
func TestIneffective(t *testing.T) {
	spot := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "spot"}}
	spot.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	onDemand := spot
	onDemand.Spec.Template.Spec.Requirements = []karpv1.Requirement{
		{Key: karpv1.LabelCapacityType, Operator: karpv1.OperatorIn, Values: []string{"on-demand"}}}
	plain := awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	reserved := awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "reserved"},
		Spec: awsv1.EC2NodeClassSpec{CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}}}
	open := awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "open",
		Annotations: map[string]string{awsv1.AnnotationOpenReservations: "true"}}}
	rebalance, prefixes, both := onDemand, plain, plain
	rebalance.Annotations = map[string]string{karpv1.AnnotationRebalance: "replace"}
	prefixes.Annotations = map[string]string{awsv1.AnnotationPrefixDelegation: "true"}
	both.Annotations, both.Spec.Kubelet = prefixes.Annotations, &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromInt32(50))}
	for _, test := range []struct {
		name    string
		opts    Options
		pools   []karpv1.NodePool
		classes []awsv1.EC2NodeClass
		want    []string
	}{
		{"all have an effect", Options{Queue: "q"}, []karpv1.NodePool{spot}, []awsv1.EC2NodeClass{plain, reserved, open}, nil},
		{"no queue, no spot", Options{}, []karpv1.NodePool{onDemand}, nil, nil},
		{"no queue, and spot", Options{}, []karpv1.NodePool{onDemand, spot}, nil, []string{"--interruption-queue"}},
		{"no queue, and recommendations", Options{}, []karpv1.NodePool{rebalance}, nil, []string{
			`annotation karpenter-go.github.io/rebalance of NodePool "spot"`}},
		{"a queue, and recommendations", Options{Queue: "q"}, []karpv1.NodePool{rebalance}, nil, nil},
		{"no queue, and a backoff", Options{InterruptionBackoff: time.Hour}, nil, nil, []string{"--interruption-backoff"}},
		{"no queue, and no longer than without a backoff", Options{InterruptionBackoff: 3 * time.Minute}, nil, nil, nil},
		{"a queue, and a backoff", Options{Queue: "q", InterruptionBackoff: time.Hour}, nil, nil, nil},
		{"prefixes", Options{}, nil, []awsv1.EC2NodeClass{prefixes}, nil},
		{"prefixes, and a number of pods", Options{}, nil, []awsv1.EC2NodeClass{both}, []string{
			`annotation karpenter-go.github.io/prefix-delegation of EC2NodeClass "plain"`}},
		{"the gate is off, and no class minds", Options{OpenReservations: true}, nil, []awsv1.EC2NodeClass{plain}, nil},
		{"the gate is off", Options{OpenReservations: true}, nil, []awsv1.EC2NodeClass{reserved, open}, []string{
			`spec.capacityReservationSelectorTerms of EC2NodeClass "reserved"`,
			`annotation karpenter-go.github.io/open-reservations of EC2NodeClass "open"`}},
	} {
		var got []string
		for _, check := range ineffectives {
			for _, found := range check(&circumstances{&test.opts, test.pools, test.classes}) {
				if found.Because == "" {
					t.Errorf("%s: %s has no reason", test.name, found.Setting)
				}
				got = append(got, found.Setting)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
