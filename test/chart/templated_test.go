package chart

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// templated is a template for each setting that may be one, of a value that a chart above this one has, and the variable
// that it becomes.
var templated = []struct{ setting, value, variable string }{
	{"batchMaxDuration", "12s", "BATCH_MAX_DURATION"},
	{"batchIdleDuration", "2s", "BATCH_IDLE_DURATION"},
	{"clusterCABundle", "TFM=", "CLUSTER_CA_BUNDLE"},
	{"clusterName", "prod", "CLUSTER_NAME"},
	{"clusterEndpoint", "https://prod.example.org", "CLUSTER_ENDPOINT"},
	{"isolatedVPC", "true", "ISOLATED_VPC"},
	{"eksControlPlane", "true", "EKS_CONTROL_PLANE"},
	{"vmMemoryOverheadPercent", "0.05", "VM_MEMORY_OVERHEAD_PERCENT"},
	{"interruptionQueue", "prod-queue", "INTERRUPTION_QUEUE"},
	{"enableZonalShift", "false", "ENABLE_ZONAL_SHIFT"},
	{"reservedENIs", "1", "RESERVED_ENIS"},
	{"ignoreDRARequests", "true", "IGNORE_DRA_REQUESTS"},
	{"disableClusterStateObservability", "true", "DISABLE_CLUSTER_STATE_OBSERVABILITY"},
	{"disableDryRun", "true", "DISABLE_DRY_RUN"},
	{"amiRefreshInterval", "20m", "AMI_REFRESH_INTERVAL"},
	{"subnetRefreshInterval", "3m", "SUBNET_REFRESH_INTERVAL"},
}

// TestTemplates passes the settings of upstream's chart as templates, as charts that depend on it do: all at once.
func TestTemplates(t *testing.T) {
	with, global, want := minimal(), values{}, map[string]string{}
	for _, test := range templated {
		with.set("settings."+test.setting, "{{ .Values.global."+test.setting+" }}")
		global[test.setting] = test.value
		want[test.variable] = test.value
	}
	with.set("global", global)
	d := deployment(t, values(with))
	got := environment(d)
	maps.DeleteFunc(got, func(name, _ string) bool { return want[name] == "" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +have):\n%s", diff)
	}
}

// TestTemplatesMean verifies that a template counts as what it becomes, by an old name too, and that a result of another
// form is refused with the template.
func TestTemplatesMean(t *testing.T) {
	given := func(setting string, global any) values {
		return values(minimal().set("global", values{"of": global}).set(setting, "{{ .Values.global.of }}"))
	}
	if r := render(t, mainChart, given("settings.enableZonalShift", false)); len(r.notices()) > 0 {
		t.Errorf("enableZonalShift is a template of false, and the notices are %q", r.notices())
	}
	old := given("settings.aws.clusterName", "old")
	old["settings"].(values)["clusterName"] = ""
	if name := environment(deployment(t, old))["CLUSTER_NAME"]; name != "old" {
		t.Errorf("the template of an old name becomes %q, want old", name)
	}
	if name := environment(deployment(t, given("settings.clusterEndpoint", "")))["CLUSTER_ENDPOINT"]; name != "" {
		t.Errorf("a template of nothing becomes %q", name)
	}
	for setting, test := range map[string]struct {
		global any
		says   string
	}{
		"settings.ignoreDRARequests": {false, "settings.ignoreDRARequests: device allocation is not supported yet"},
		"settings.isolatedVPC": {"maybe", `settings.isolatedVPC is the template {{ .Values.global.of }}, which becomes "maybe", want ` +
			`true or false`},
		"settings.batchMaxDuration": {"soon", `which becomes "soon", want a duration such as 10s`},
		"settings.reservedENIs":     {"-1", `which becomes "-1", want a number`},
		"settings.clusterName":      {"", "settings.clusterName is required"},
	} {
		if _, err := template(t, mainChart, given(setting, test.global)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: the error is %v, want one with %q", setting, err, test.says)
		}
	}
	if _, err := template(t, mainChart, values(minimal().set("settings.isolatedVPC", "true"))); err == nil {
		t.Error("a text that is no template is accepted for a boolean")
	}
}

// TestPriceConfigMap verifies that a named ConfigMap is mounted where the controller reads its price rules, and that it
// excludes a file.
func TestPriceConfigMap(t *testing.T) {
	without := deployment(t, values(minimal()))
	d := deployment(t, values(minimal().set("settings.priceConfigMap", "our-prices")))
	if got := environment(d)["PRICE_FILE"]; got != "/etc/karpenter/prices/prices.yaml" {
		t.Errorf("PRICE_FILE is %q", got)
	}
	want := without.Spec.Template.Spec.DeepCopy()
	want.Volumes = append(want.Volumes, corev1.Volume{Name: "karpenter-prices", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "our-prices"}}}})
	want.Containers[0].VolumeMounts = append(want.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "karpenter-prices", MountPath: "/etc/karpenter/prices", ReadOnly: true})
	if diff := cmp.Diff(want.Volumes, d.Spec.Template.Spec.Volumes); diff != "" {
		t.Errorf("volumes (-want +have):\n%s", diff)
	}
	if diff := cmp.Diff(want.Containers[0].VolumeMounts, d.Spec.Template.Spec.Containers[0].VolumeMounts); diff != "" {
		t.Errorf("mounts (-want +have):\n%s", diff)
	}
	for _, c := range []struct {
		name string
		with setter
		want string
	}{
		{"a file too", minimal().set("settings.priceConfigMap", "our-prices").set("settings.priceFile", "/prices.yaml"),
			"settings.priceFile and settings.priceConfigMap: want one of them"},
		{"no name", minimal().set("settings.priceConfigMap", "Our_Prices"), "priceConfigMap"},
	} {
		if _, err := template(t, mainChart, values(c.with)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// TestSidecarMounts verifies that sidecars have the controller's mounts, those for all sidecars and their own, and no path
// twice, which the API server refuses.
func TestSidecarMounts(t *testing.T) {
	mount := func(name, path string) values { return values{"name": name, "mountPath": path} }
	with := minimal().set("controller.extraVolumeMounts", []any{mount("certs", "/certs"), mount("shared", "/shared")}).
		set("controller.sidecarVolumeMounts", []any{mount("socket", "/run")}).
		set("controller.sidecarContainer", []any{
			values{"name": "plain", "image": "a"},
			values{"name": "own", "image": "b", "volumeMounts": []any{mount("other", "/shared")}},
		})
	containers := deployment(t, values(with)).Spec.Template.Spec.Containers
	got := map[string][]string{}
	for _, c := range containers {
		for _, m := range c.VolumeMounts {
			got[c.Name] = append(got[c.Name], m.Name+" "+m.MountPath)
		}
	}
	want := map[string][]string{
		"controller": {"karpenter-captures /tmp", "certs /certs", "shared /shared"},
		"plain":      {"certs /certs", "shared /shared", "socket /run"},
		"own":        {"other /shared", "certs /certs", "socket /run"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts by container (-want +have):\n%s", diff)
	}
	with.set("controller.extraVolumeMounts", []any{mount("own", "/tmp/")})
	own := deployment(t, values(with)).Spec.Template.Spec
	if got := own.Containers[0].VolumeMounts; len(got) != 1 || got[0].Name != "own" || len(own.Volumes) > 0 {
		t.Errorf("with an own volume at /tmp the mounts are %v and the volumes %v", got, own.Volumes)
	}
	bare := deployment(t, values(minimal().set("controller.sidecarContainer", []any{values{"name": "bare", "image": "a"}})))
	if diff := cmp.Diff(corev1.Container{Name: "bare", Image: "a"}, bare.Spec.Template.Spec.Containers[1]); diff != "" {
		t.Errorf("a sidecar without mounts (-want +have):\n%s", diff)
	}
}
