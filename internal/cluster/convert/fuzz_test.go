package convert

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// FuzzPod checks that no pod that can be decoded makes the conversion panic, change the pod, or contradict itself.
func FuzzPod(f *testing.F) {
	for _, seed := range []string{
		"spec: {nodeName: node-1}",
		"metadata: {name: a}" + unschedulableStatus,
		"spec: {nodeSelector: {a: b}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}, {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}]}}}}" + unschedulableStatus,
		"spec: {priority: -5, containers: [{name: a, resources: {requests: {cpu: 1e30}}}], overhead: {cpu: -1}}" + unschedulableStatus,
		"spec: {nodeName: node-1, resources: {requests: {cpu: 1}}}\nstatus: {resources: {requests: {cpu: 2}}}",
		"spec: {containers: [{name: a, resources: {requests: {cpu: 1e100000000}}}]}" + unschedulableStatus,
		"metadata: {namespace: shop, labels: {app: db}}" + betweenSpec + unschedulableStatus,
		"metadata: {namespace: shop}\nspec: {volumes: [{name: a, persistentVolumeClaim: {claimName: bound}}, {name: b, persistentVolumeClaim: {claimName: waiting}}, {name: c, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: zonal}}}}]}" + unschedulableStatus,
		"metadata: {managedFields: [{manager: karpenter-nominate, subresource: status, fieldsV1: {}}]}" + unschedulableStatus + "  nominatedNodeName: b\n",
	} {
		f.Add([]byte(seed))
	}
	v := words()
	f.Fuzz(func(t *testing.T, text []byte) {
		pod := &corev1.Pod{}
		if yaml.Unmarshal(text, pod) == nil {
			checkPod(t, pod, v)
		}
	})
}

// TestRandomPods checks the same for pods with randomly filled fields.
func TestRandomPods(t *testing.T) {
	v := words()
	met := map[Disposition]int{}
	for seed := range uint64(300) {
		pod := &corev1.Pod{}
		fill(reflect.ValueOf(pod).Elem(), rand.New(rand.NewPCG(seed, 0)), 0)
		if seed%2 == 0 {
			pod.DeletionTimestamp, pod.OwnerReferences, pod.Status.NominatedNodeName = nil, nil, ""
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable}}
		}
		if seed%4 == 0 {
			pod.Spec.NodeName = ""
		}
		met[checkPod(t, pod, v)]++
	}
	switch {
	case met[Ignore] == 0:
		t.Errorf("the pods cover too few dispositions: met[Ignore] is 0, %v", met)
	case met[Pending] == 0:
		t.Errorf("the pods cover too few dispositions: met[Pending] is 0, %v", met)
	case met[Bound] == 0:
		t.Errorf("the pods cover too few dispositions: met[Bound] is 0, %v", met)
	}
}

// fill sets every exported field at random; pointers, lists and maps are nil half of the time.
func fill(v reflect.Value, random *rand.Rand, depth int) {
	if !v.CanSet() || depth > 14 {
		return
	}
	absent := random.IntN(2) == 0
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "b/c", "-", "1", "karpenter.sh/x", "DoNotSchedule", "Exists", "NoSchedule"}[random.IntN(9)])
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(int32(random.Uint32())))
	case reflect.Bool:
		v.SetBool(absent)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), random, depth+1)
		}
	case reflect.Pointer:
		if !absent {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), random, depth+1)
		}
	case reflect.Slice:
		if !absent && depth < 12 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), random, depth+1)
			fill(v.Index(1), random, depth+1)
		}
	case reflect.Map:
		if !absent {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, random, depth+1)
			fill(value, random, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, value)
		}
	}
}

// fuzzStorage is parsed only once, to keep fuzzing fast.
var fuzzStorage = func() func(testing.TB) *storage {
	var once sync.Once
	var read *storage
	return func(t testing.TB) *storage {
		once.Do(func() { read = newStorage(t, storageText) })
		return read
	}
}()

func checkPod(t *testing.T, pod *corev1.Pod, v *Vocabulary) Disposition {
	t.Helper()
	before := pod.DeepCopy()
	around := &Around{Volumes: fuzzStorage(t), Namespaces: map[string]map[string]string{"a": {"a": "b/c"}}}
	spec, disposition := Pod(pod, v, around)
	if !reflect.DeepEqual(before, pod) {
		t.Fatalf("the pod was changed:\n%s", cmp.Diff(before, pod))
	}
	if (disposition == Bound) != (spec.Node != "") {
		t.Errorf("disposition %d on node %q", disposition, spec.Node)
	}
	if again, _ := Pod(pod, v, around); !cmp.Equal(spec, again) {
		t.Errorf("a second conversion differs:\n%s", cmp.Diff(spec, again))
	}
	trimmed := pod.DeepCopy()
	Trim(trimmed)
	if after, again := Pod(trimmed, v, around); again != disposition || !cmp.Equal(spec, after) {
		t.Errorf("after Trim the disposition is %d, was %d; the difference:\n%s", again, disposition, cmp.Diff(spec, after))
	}
	return disposition
}
