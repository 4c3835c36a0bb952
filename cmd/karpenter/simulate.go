package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// simulation is what the flags of the verb say.
type simulation struct {
	manifests         []string
	instanceTypes     string
	output            string
	failUnschedulable bool
}

// newSimulateCommand makes the verb that answers from files which nodes would be bought for pending pods.
func newSimulateCommand() *cobra.Command {
	var s simulation
	command := &cobra.Command{
		Use:   "simulate -f FILE|DIR|- ...",
		Short: "Say which nodes would be bought for the pods in some files",
		Long: `Reads manifests, decides as the controller would, and prints the nodes that would be bought, what goes onto nodes that
exist, and which pods have no place, with the reasons. Nothing is contacted and nothing is changed.

Files hold YAML documents, JSON objects or Lists of NodePool, Pod, Node, NodeClaim, DaemonSet, PriorityClass, and of
Deployment, StatefulSet, ReplicaSet and Job, whose missing replicas count as pending pods. Other kinds are passed over.
Pools count as ready, whatever the kind of their node class.`,
		Example: "  karpenter simulate -f pools.yaml -f app/ --instance-types types.json\n  kubectl get nodepools,pods,nodes -A -o json | karpenter simulate -f - -o json",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return s.run(command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&s.manifests, "filename", "f", nil, "file or folder of manifests, - for standard input; may be repeated")
	flags.StringVar(&s.instanceTypes, "instance-types", "", "file of instance types and prices (default: instance-types.json in a folder given by -f, else the types of the kwok provider)")
	flags.StringVarP(&s.output, "output", "o", "text", "text or json")
	flags.BoolVar(&s.failUnschedulable, "fail-on-unschedulable", false, "exit with 1 when a pod has no place")
	return command
}

func (s simulation) run(in io.Reader, out, progress io.Writer) error {
	switch {
	case len(s.manifests) == 0:
		return usageErrorf("no manifests: name files or folders with -f, or - for standard input")
	case s.output != "text" && s.output != "json":
		return usageErrorf("--output is %q, want text or json", s.output)
	}
	// 1. Read.
	input, err := readManifests(s.manifests, in)
	if err != nil {
		return err
	}
	types, labels, err := s.types(input)
	if err != nil {
		return err
	}
	for _, kind := range input.ignored() {
		fmt.Fprintln(progress, "passed over:", kind)
	}
	// 2. Convert.
	builder, idle, err := input.world(types, labels)
	if err != nil {
		return err
	}
	// 3. Decide.
	snap := builder.Snapshot(time.Now().UTC())
	plan := placement.Schedule(snap, placement.Options{})
	// 4. Tell.
	answer := answerOf(snap, plan, idle)
	if s.output == "json" {
		err = answer.writeJSON(out)
	} else {
		err = answer.writeText(out)
	}
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if n := len(answer.Unschedulable); n > 0 && s.failUnschedulable {
		return fmt.Errorf("%d of %d pods have no place", n, answer.pods())
	}
	return nil
}

// types reads the instance types, and the labels that providers give them. Labels that only a folder's meta.json names
// are absent on all types.
func (s simulation) types(input *manifests) ([]cloud.InstanceType, []string, error) {
	path := cmp.Or(s.instanceTypes, input.typesFile)
	types, labels := kwok.EmbeddedTypes()
	if path != "" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, usageErrorf("reading instance types: %w", readable(err))
		}
		defer file.Close()
		if types, labels, err = kwok.ReadInstanceTypes(file, path); err != nil {
			return nil, nil, &usageError{err}
		}
	}
	for _, label := range input.providerLabels {
		if slices.Contains(labels, label) {
			continue
		}
		labels = append(labels, label)
		for i := range types {
			types[i].Requirements = append(slices.Clip(types[i].Requirements), cloud.Requirement{Key: label, Operator: "DoesNotExist"})
		}
	}
	return types, labels, nil
}

// readable takes the path out of an error of the file system; who wraps it names the file.
func readable(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", filepath.ToSlash(failed.Path), failed.Err)
	}
	return err
}

// world tells a builder of all objects. The second result are pods that wait for something other than a node.
func (m *manifests) world(types []cloud.InstanceType, labels []string) (*model.Builder, []refusal, error) {
	v := convert.NewVocabulary(cloud.Declared{WellKnown: labels}, m.classes()...)
	catalogue, wrong := convert.Catalogue(types, v)
	if len(wrong) > 0 {
		return nil, nil, usageErrorf("instance types: %s: %s", wrong[0].Field, wrong[0].Reason)
	}
	b := model.NewBuilder()
	for i := range m.pools {
		pool := &m.pools[i]
		if errs := karpv1.Validate(pool.object, v.Rules); len(errs) > 0 {
			return nil, nil, usageErrorf("%s: %w", pool.origin, errs[0])
		}
		spec := convert.Pool(ready(pool.object), v)
		convert.AddCatalogue(&spec, catalogue, "there are no instance types")
		b.UpsertPool(spec)
	}
	for _, set := range m.daemons {
		b.UpsertDaemon(convert.Daemon(set.object, v))
	}
	if err := m.tellNodes(b, v); err != nil {
		return nil, nil, err
	}
	return b, m.tellPods(b, v), nil
}

// ready is the pool as the controller would see it once everything is set up.
func ready(pool *karpv1.NodePool) *karpv1.NodePool {
	pool = pool.DeepCopy()
	pool.Status.Conditions = nil
	pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
	return pool
}

// classes are the kinds of node class that the pools refer to; all of them are ours here.
func (m *manifests) classes() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, pool := range m.pools {
		ref := pool.object.Spec.Template.Spec.NodeClassRef
		if kind := (schema.GroupKind{Group: ref.Group, Kind: ref.Kind}); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// tellNodes joins claims with their nodes.
func (m *manifests) tellNodes(b *model.Builder, v *convert.Vocabulary) error {
	claimed := map[*corev1.Node]bool{}
	for _, claim := range m.claims {
		var node *corev1.Node
		for _, n := range m.nodes {
			if claim.object.Status.ProviderID != "" && n.object.Spec.ProviderID == claim.object.Status.ProviderID {
				node = n.object
				claimed[node] = true
			}
		}
		spec, refused := convert.Node(node, claim.object, v)
		if refused != nil {
			return usageErrorf("%s: %s: %s", claim.origin, refused.Field, refused.Reason)
		}
		b.UpsertNode(spec)
	}
	for _, n := range m.nodes {
		if !claimed[n.object] {
			spec, _ := convert.Node(n.object, nil, v)
			b.UpsertNode(spec)
		}
	}
	return nil
}

// tellPods treats every pod without a node as one that kube-scheduler found no place for, unless it waits for something
// else; those are the result.
func (m *manifests) tellPods(b *model.Builder, v *convert.Vocabulary) []refusal {
	var idle []refusal
	for _, p := range m.pods {
		pod := p.object
		waiting := pod.Spec.NodeName == "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
		if waiting && len(pod.Spec.SchedulingGates) > 0 {
			idle = append(idle, refusal{key(pod), []string{"it has scheduling gates: " + pod.Spec.SchedulingGates[0].Name}})
			continue
		}
		if waiting {
			pod = unschedulable(pod)
		}
		spec, disposition := convert.Pod(pod, v, nil)
		switch {
		case disposition != convert.Ignore:
			b.UpsertPod(spec)
		case waiting && pod.DeletionTimestamp != nil:
			idle = append(idle, refusal{key(pod), []string{"it is being deleted"}})
		case waiting:
			idle = append(idle, refusal{key(pod), []string{"it belongs to a DaemonSet: its node is there or will never be"}})
		}
	}
	return idle
}

// unschedulable is the pod with kube-scheduler's word that it has no place, free of nominations of others.
func unschedulable(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if !convert.NominatedByUs(pod) {
		pod.Status.NominatedNodeName = ""
	}
	return pod
}

func key(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }
