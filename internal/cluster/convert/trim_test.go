package convert

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestTrim checks which fields of a pod are kept, and that it is converted as before.
func TestTrim(t *testing.T) {
	tests := []struct{ name, pod, want string }{
		{
			"what only kubelet needs goes", `
metadata: {name: a, labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: "true", example.com/long: text}, managedFields: [{manager: kubectl}]}
spec:
  nodeName: node-1
  serviceAccountName: web
  securityContext: {runAsNonRoot: true}
  imagePullSecrets: [{name: registry}]
  dnsConfig: {nameservers: [10.0.0.10]}
  containers:
  - name: web
    image: web:1
    command: [web]
    args: [--port=80]
    env: [{name: A, value: B}]
    ports: [{containerPort: 80}, {containerPort: 81, hostPort: 81}]
    readinessProbe: {httpGet: {path: /, port: 80}}
    volumeMounts: [{name: config, mountPath: /etc/web}]
    resources: {requests: {cpu: 1}, limits: {cpu: 2}}
  initContainers:
  - {name: sidecar, image: proxy:1, restartPolicy: Always, resources: {requests: {cpu: 1}}}
  volumes: [{name: config, configMap: {name: web}}, {name: tmp, emptyDir: {}}]
status: {phase: Running, podIP: 10.1.0.1, podIPs: [{ip: 10.1.0.1}], hostIP: 10.0.0.1, startTime: "2026-11-20T09:00:00Z", conditions: [{type: Ready, status: "True"}],
  containerStatuses: [{name: web, image: "web:1", imageID: abc, ready: true, state: {running: {}}}]}`, `
metadata: {name: a, labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: "true"}}
spec:
  nodeName: node-1
  serviceAccountName: web
  containers:
  - {name: web, ports: [{containerPort: 81, hostPort: 81}], resources: {requests: {cpu: 1}, limits: {cpu: 2}}}
  initContainers:
  - {name: sidecar, restartPolicy: Always, resources: {requests: {cpu: 1}}}
status: {phase: Running, startTime: "2026-11-20T09:00:00Z", conditions: [{type: Ready, status: "True"}]}`,
		},
		{
			"that the requests were changed stays", `
metadata: {name: a, managedFields: [{manager: kubelet, operation: Update, apiVersion: v1, subresource: status},
  {manager: vpa, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}, subresource: resize}]}
spec: {nodeName: node-1, containers: [{name: a, image: a}]}`, `
metadata: {name: a, managedFields: [{operation: Update, apiVersion: v1, subresource: resize}]}
spec: {nodeName: node-1, containers: [{name: a}]}`,
		},
		{
			"ports on the host's network stay", `
spec: {nodeName: n, hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80}]}]}`, `
spec: {nodeName: n, hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80}]}]}`,
		},
		{
			"volumes with a claim stay where they are in the list", `
metadata: {name: a, namespace: shop}
spec: {volumes: [{name: a, emptyDir: {}}, {name: b, persistentVolumeClaim: {claimName: none}}, {name: c, secret: {secretName: c}}]}` + unschedulableStatus, `
metadata: {name: a, namespace: shop}
spec: {volumes: [{name: a}, {name: b, persistentVolumeClaim: {claimName: none}}]}` + unschedulableStatus,
		},
		{
			"a resize under way is known", `
spec: {nodeName: n, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
status: {containerStatuses: [{name: a, image: a, allocatedResources: {cpu: 2}, resources: {requests: {cpu: 2}}}]}`, `
spec: {nodeName: n, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
status: {containerStatuses: [{name: a, allocatedResources: {cpu: 2}, resources: {requests: {cpu: 2}}}]}`,
		},
		{
			"a resize that is over is not", `
spec: {nodeName: n, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
status: {containerStatuses: [{name: a, image: a, allocatedResources: {cpu: 1000m}, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]}`, `
spec: {nodeName: n, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod, want := decode[corev1.Pod](t, test.pod), decode[corev1.Pod](t, test.want)
			before, disposition := Pod(pod, words(), nil)
			Trim(pod)
			if diff := cmp.Diff(text(t, want), text(t, pod)); diff != "" {
				t.Errorf("the pod (-want +got):\n%s", diff)
			}
			after, again := Pod(pod, words(), nil)
			if diff := cmp.Diff(before, after); diff != "" || disposition != again {
				t.Errorf("the conversion differs, disposition %d instead of %d:\n%s", again, disposition, diff)
			}
		})
	}
}

func TestTrimNode(t *testing.T) {
	node := decode[corev1.Node](t, `
metadata: {name: a, labels: {b: c}, managedFields: [{manager: kubelet}]}
spec: {providerID: a, taints: [{key: a, effect: NoSchedule}]}
status: {capacity: {cpu: 4}, allocatable: {cpu: 3}, conditions: [{type: Ready, status: "True"}], nodeInfo: {architecture: amd64}, volumesInUse: [a],
  volumesAttached: [{name: a, devicePath: b}], images: [{names: [a], sizeBytes: 1}]}`)
	want := decode[corev1.Node](t, `
metadata: {name: a, labels: {b: c}}
spec: {providerID: a, taints: [{key: a, effect: NoSchedule}]}
status: {capacity: {cpu: 4}, allocatable: {cpu: 3}, conditions: [{type: Ready, status: "True"}]}`)
	Trim(node)
	if diff := cmp.Diff(text(t, want), text(t, node)); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
}

// text returns an object as YAML, line by line.
func text(t *testing.T, object any) []string {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := yaml.JSONToYAML(content)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(lines), "\n")
}
