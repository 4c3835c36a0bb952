package crds_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// richPool sets most fields of a pool.
const richPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: rich, labels: {a: b}, annotations: {a: b}, finalizers: [example.com/a]}
spec:
  weight: 5
  limits: {cpu: 5, memory: 1Gi}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s, budgets: [{nodes: 10%, reasons: [Empty]}, {nodes: "5", schedule: "@daily", duration: 8h}]}
  template:
    metadata: {labels: {team: a}, annotations: {a: b}}
    spec:
      expireAfter: 720h
      terminationGracePeriod: 5m
      taints: [{key: a, value: b, effect: NoSchedule}]
      startupTaints: [{key: a, effect: NoExecute}]
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64, arm64], minValues: 1}, {key: a, operator: Gt, values: ["5"]}]
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
`

// instead lists the values that replace a value, one per variant.
var instead = []any{nil, int64(5), 0.5, int64(-1), "x", "", true, []any{}, []any{int64(5)}, map[string]any{},
	map[string]any{"a": int64(5)}, map[string]any{"a": "b"}}

// variants yields the object once per change: each nested value is replaced, removed, or extended by an unknown
// field.
func variants(value any, path string, give func(path string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := path + "." + name
			if below == ".apiVersion" || below == ".kind" {
				continue // they address the request
			}
			was := value[name]
			for i, other := range instead {
				value[name] = runtime.DeepCopyJSONValue(other)
				give(below + " instead " + strconv.Itoa(i))
			}
			delete(value, name)
			give(below + " left out")
			value[name] = was
			variants(was, below, give)
		}
		value["unheard"] = "of"
		give(path + ".unheard")
		delete(value, "unheard")
	case []any:
		for i, was := range value {
			for n, other := range instead {
				value[i] = runtime.DeepCopyJSONValue(other)
				give(path + "[" + strconv.Itoa(i) + "] instead " + strconv.Itoa(n))
			}
			value[i] = was
			variants(was, path+"["+strconv.Itoa(i)+"]", give)
		}
	}
}

// testAdmission checks that package admission rejects exactly the variants that the server rejects.
func testAdmission(t *testing.T, s *server) {
	unhurried := rest.CopyConfig(s.config)
	unhurried.QPS = -1
	api, err := discovery.NewDiscoveryClientForConfig(unhurried)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ resource, good, change string }{
		{"/apis/karpenter.sh/v1/nodepools", richPool, "{}"},
		{"/apis/karpenter.sh/v1/nodeclaims", goodClaim,
			"spec: {requirements: [{key: a, operator: In, values: [b]}], taints: [{key: a, effect: NoSchedule}], resources: {requests: {cpu: 5}}, expireAfter: Never}"},
		{"/apis/karpenter.k8s.aws/v1/ec2nodeclasses", goodEC2Class, fullEC2Class},
		{"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", goodClass, "spec: {nodeRegistrationDelay: 5s}"},
	} {
		object, tried, accepted := merged(t, test.good, test.change).Object, 0, 0
		agree := func(variant string) {
			body, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			refusals, err := s.twin.Create(object)
			if err != nil {
				t.Fatal(err)
			}
			err = api.RESTClient().Post().AbsPath(test.resource).Param("dryRun", "All").Param("fieldValidation",
				"Strict").SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
			switch {
			case err == nil, apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			default:
				t.Fatalf("%s: got error %v, want none or that the object is invalid", variant, err)
			}
			tried++
			if err == nil {
				accepted++
			}
			if (err == nil) != (len(refusals) == 0) {
				t.Errorf("%s: the server returns %v, package admission %q", variant, err, refusals)
			}
		}
		agree("as it is")
		variants(object, "", agree)
		switch {
		case tried < 20:
			t.Errorf("%s: tried is %v, want at least 20", test.resource, tried)
		case accepted < 3:
			t.Errorf("%s: accepted is %v, want at least 3", test.resource, accepted)
		case accepted == tried:
			t.Errorf("%s: accepted is %v, want another value than %v", test.resource, accepted, tried)
		}
		t.Logf("%s: %d variants, %d accepted", test.resource, tried, accepted)
	}
}
