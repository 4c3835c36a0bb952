package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// notices returns the notices about values in the notes.
func (r rendered) notices() []string {
	var all []string
	for line := range strings.Lines(r.notes) {
		if notice, ok := strings.CutPrefix(line, "  - "); ok {
			all = append(all, strings.TrimSpace(notice))
		}
	}
	slices.Sort(all)
	return all
}

// TestUpstreamDefaults installs the default values of upstream's chart with the name of a cluster. The Deployment is the
// one of this chart's own defaults.
func TestUpstreamDefaults(t *testing.T) {
	r := render(t, mainChart, values(setter(read(t, "upstream/1.6.yaml")).set("settings.clusterName", "test")))
	want := deployment(t, minimal())
	if diff := cmp.Diff(want, decode[appsv1.Deployment](t, r, "Deployment")); diff != "" {
		t.Errorf("the Deployment differs (-own defaults +upstream's):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"controller.image names upstream's image; this chart's own is used instead"}, r.notices()); diff != "" {
		t.Errorf("notices (-want +have):\n%s", diff)
	}
}

// TestInitContainers checks that an empty map, which is upstream's default, is no container, and that a list is used.
func TestInitContainers(t *testing.T) {
	if d := deployment(t, minimal().set("initContainers", values{})); len(d.Spec.Template.Spec.InitContainers) != 0 {
		t.Errorf("an empty map gives %v", d.Spec.Template.Spec.InitContainers)
	}
	d := deployment(t, minimal().set("initContainers", []any{values{"name": "first", "image": "example.org/first"}}))
	if all := d.Spec.Template.Spec.InitContainers; len(all) != 1 || all[0].Name != "first" {
		t.Errorf("a list of one container gives %v", all)
	}
	if _, err := template(t, mainChart, minimal().set("initContainers", values{"name": "first"})); err == nil {
		t.Error("a map with a container is accepted; the Deployment could not be applied")
	}
}

// TestImages checks which images are used, replaced and refused.
func TestImages(t *testing.T) {
	const own = "karpenter-go/karpenter:"
	for _, test := range []struct{ repository, tag, digest, want, refused string }{
		{repository: "mirror.example.org/karpenter-go/karpenter", tag: "0.2.0", want: "mirror.example.org/karpenter-go/karpenter:0.2.0"},
		{repository: "mirror.example.org/karpenter", tag: "1", digest: "sha256:a", want: "mirror.example.org/karpenter:1@sha256:a"},
		{repository: "public.ecr.aws/karpenter/controller", tag: "1.14.1", digest: "sha256:a", want: own},
		{repository: "mirror.example.org/karpenter-controller", tag: "1", want: "mirror.example.org/karpenter-controller:1"},
		{repository: "1234.dkr.example/karpenter/controller", tag: "1.14.1", digest: "sha256:a",
			refused: "1234.dkr.example/karpenter/controller is a copy"},
		{repository: "mirror.example.org:5000/public.ecr.aws/karpenter/controller", refused: "set it to your copy of karpenter-go/karpenter"},
		{repository: "karpenter/controller", refused: "controller.image.tag to"},
		{repository: "mirror.example.org/karpenter/controller:1.14.1", refused: "is a copy of upstream's program"},
	} {
		t.Run(test.repository, func(t *testing.T) {
			image := values{"repository": test.repository, "tag": test.tag, "digest": test.digest}
			r, err := template(t, mainChart, minimal().set("controller.image", image))
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || strings.Count(err.Error(), "\n  - ") != 1 {
					t.Errorf("the error is %v, want one line about %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := decode[appsv1.Deployment](t, r, "Deployment")
			if have := d.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(have, test.want) {
				t.Errorf("the image is %s, want %s", have, test.want)
			}
		})
	}
}

// TestMisspelledValues checks that an unknown value that resembles a known one stops the installation, and that the
// error names both.
func TestMisspelledValues(t *testing.T) {
	for path, want := range map[string]string{
		"replica":                    "replicas",
		"tolerations_":               "tolerations",
		"nodeselector":               "nodeSelector",
		"setings.clusterName":        "settings",
		"settings.clusterNam":        "settings.clusterName",
		"settings.clustername":       "settings.clusterName",
		"settings.interuptionQueue":  "settings.interruptionQueue",
		"settings.batchMaxDurations": "settings.batchMaxDuration",
		"settings.featureGates.spotToSpotConsolidaton":   "settings.featureGates.spotToSpotConsolidation",
		"settings.featureGates.SpotToSpotConsolidation":  "settings.featureGates.spotToSpotConsolidation",
		"settings.featureGates.nodeRepiar":               "settings.featureGates.nodeRepair",
		"settings.awsFeatureGates.nodeclassCEL":          "settings.awsFeatureGates.nodeClassCEL",
		"serviceMonitor.enable":                          "serviceMonitor.enabled",
		"serviceMonitor.additionalLabel":                 "serviceMonitor.additionalLabels",
		"serviceAccount.anotations":                      "serviceAccount.annotations",
		"prometheusRule.runbookBaseUrl":                  "prometheusRule.runbookBaseURL",
		"podDisruptionBudget.maxUnavailble":              "podDisruptionBudget.maxUnavailable",
		"controller.resorces":                            "controller.resources",
		"controller.metrics.prot":                        "controller.metrics.port",
		"resources":                                      "controller.resources",
		"settings.logLevel":                              "", // two places have this name
		"settings.nodeRepair":                            "settings.featureGates.nodeRepair",
		"settings.aws.subnetRefreshInterval":             "settings.subnetRefreshInterval",
		"settings.featureGates.nodeClassCEL":             "settings.awsFeatureGates.nodeClassCEL",
		"controller.tolerations":                         "tolerations",
		"settings.thisIsNotAValue":                       "",
		"settings.featureGates.somethingOfALaterVersion": "",
		"karpenter":                "",
		"namespace":                "",
		"serviceMonitor.labels":    "",
		"serviceMonitor.namespace": "",
		"serviceMonitor.interval":  "",
		"settings.securityGroupRefreshIntervalOfTomorrow": "",
	} {
		t.Run(path, func(t *testing.T) {
			with := minimal().set(path, "x")
			r, err := template(t, mainChart, values(with))
			if want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if notice := path + " is not known and has no effect"; !slices.Contains(r.notices(), notice) {
					t.Errorf("the notices are %q, want %q among them", r.notices(), notice)
				}
				return
			}
			if line := "is not known: did you mean " + want + "?"; err == nil || !strings.Contains(err.Error(), line) {
				t.Errorf("the error is %v, want %q in it", err, line)
			}
		})
	}
}

// TestMisspelledRequiredValue checks that the error names the misspelled value beside the one that is missing.
func TestMisspelledRequiredValue(t *testing.T) {
	_, err := template(t, mainChart, setter{}.set("settings.clusterNam", "x"))
	for _, want := range []string{"settings.clusterName is required", "settings.clusterNam is not known: did you mean settings.clusterName?"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not contain %q", err, want)
		}
	}
}

// TestKnownValues checks that every default is a known name, and that free maps and the values of a parent chart are
// accepted without a notice.
func TestKnownValues(t *testing.T) {
	with := minimal().set("global", values{"anything": true}).set("podLabels", values{"replica": "x"}).
		set("nodeSelector", values{"setings": "x"}).set("serviceMonitor.endpointConfig", values{"intervall": "1m"}).
		set("strategy", values{"rollingUpdate": values{"maxSurge": 1}})
	if r := render(t, mainChart, values(with)); len(r.notices()) != 0 {
		t.Errorf("the notices are %q, want none", r.notices())
	}
	known := map[string][]string{}
	for line := range strings.SplitSeq(file(t, mainChart+"/templates/_unknown.tpl"), "{{- define \"karpenter.known\" -}}\n") {
		if text, _, found := strings.Cut(line, "{{- end }}"); found && strings.HasPrefix(text, "values:") {
			if err := yaml.Unmarshal([]byte(text), &known); err != nil {
				t.Fatal(err)
			}
		}
	}
	defaults := values{}
	if err := yaml.Unmarshal([]byte(file(t, mainChart+"/values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	for path, names := range known {
		at := any(defaults)
		for key := range strings.SplitSeq(path, ".") {
			if path != "values" {
				at, _ = at.(values)[key].(values)
			}
		}
		if path == "settings.aws" { // it has older names only
			continue
		}
		have, ok := at.(values)
		if !ok || len(have) == 0 {
			t.Errorf("values.yaml has nothing at %s", path)
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if !slices.Contains(names, name) {
				t.Errorf("the value %s.%s is missing among the known names", path, name)
			}
		}
	}
}

// TestDefinitionValues checks that the chart of the definitions refuses unknown values by name, and accepts those of
// upstream's chart.
func TestDefinitionValues(t *testing.T) {
	for path, refused := range map[string]string{"additionalAnnotations.a": "", "webhook.serviceName": "", "global.a": "",
		"kep": "'kep'", "guard.enabeld": "'enabeld'", "conversion.servce": "'servce'"} {
		_, err := template(t, definitionChart, values(setter{}.set(path, "x")))
		if (refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: the error is %v, want one about %q", path, err, refused)
		}
	}
}
