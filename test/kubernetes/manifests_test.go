// Package kubernetes_test builds deploy/kubernetes as kubectl apply -k does, and reads what comes of it
// with the types of Kubernetes. It is a module of its own, because nothing else needs these types.
package kubernetes_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const folder = "../../deploy/kubernetes"

// manifests are the objects of the folder, by their kinds.
type manifests struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	config     *corev1.ConfigMap
	secret     *corev1.Secret
	claim      *corev1.PersistentVolumeClaim
	budget     *policyv1.PodDisruptionBudget
}

// read builds the folder and decodes each object strictly: a field that the type does not have, or
// one that is there twice, is an error.
func read(t *testing.T) (m manifests) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var documents [][]byte
	for _, r := range built.Resources() {
		document, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	for _, name := range []string{"deployment", "service", "storage", "disruption", "secret.example"} {
		document, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "secret.example" {
			documents = append(documents, document)
			continue
		}
		// What is built has each field once, so the files are decoded, too.
		(&manifests{}).decode(t, document)
	}
	for _, document := range documents {
		m.decode(t, document)
	}
	return m
}

// decode reads one object.
func (m *manifests) decode(t *testing.T, document []byte) {
	t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		t.Fatalf("%s: %v", kind.Kind, err)
	}
	// As the API server does; other decoders ignore the case of names.
	mistakes, err := json.UnmarshalStrict(text, m.place(t, kind.APIVersion, kind.Kind))
	if err = errors.Join(append(mistakes, err)...); err != nil {
		t.Errorf("%s: %v", kind.Kind, err)
	}
}

// place returns where an object of a kind is read into.
func (m *manifests) place(t *testing.T, version, kind string) any {
	t.Helper()
	switch version + " " + kind {
	case "apps/v1 Deployment":
		m.deployment = &appsv1.Deployment{}
		return m.deployment
	case "v1 Service":
		m.service = &corev1.Service{}
		return m.service
	case "v1 ConfigMap":
		m.config = &corev1.ConfigMap{}
		return m.config
	case "v1 Secret":
		m.secret = &corev1.Secret{}
		return m.secret
	case "v1 PersistentVolumeClaim":
		m.claim = &corev1.PersistentVolumeClaim{}
		return m.claim
	case "policy/v1 PodDisruptionBudget":
		m.budget = &policyv1.PodDisruptionBudget{}
		return m.budget
	}
	t.Fatalf("the test does not know %s of %s", kind, version)
	return nil
}

// TestManifests checks that the objects fit each other.
func TestManifests(t *testing.T) {
	m := read(t)
	if t.Failed() {
		return
	}
	if m.deployment == nil || m.service == nil || m.config == nil || m.secret == nil || m.claim == nil || m.budget == nil {
		t.Fatalf("an object is missing: %+v", m)
	}
	spec := m.deployment.Spec
	pod := spec.Template.Spec
	container := pod.Containers[0]
	podLabels := labels.Set(spec.Template.Labels)
	for name, selector := range map[string]map[string]string{
		"Deployment": spec.Selector.MatchLabels, "Service": m.service.Spec.Selector, "PodDisruptionBudget": m.budget.Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(podLabels) {
			t.Errorf("the selector of the %s, %v, does not match the pods, %v", name, selector, podLabels)
		}
	}

	// Volumes name what is there, and each mount has a volume.
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
		switch {
		case v.ConfigMap != nil && v.ConfigMap.Name != m.config.Name:
			t.Errorf("volume %s: there is no ConfigMap %s", v.Name, v.ConfigMap.Name)
		case v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != m.claim.Name:
			t.Errorf("volume %s: there is no claim %s", v.Name, v.PersistentVolumeClaim.ClaimName)
		case v.Secret != nil:
			if v.Secret.SecretName != m.secret.Name {
				t.Errorf("volume %s: there is no Secret %s", v.Name, v.Secret.SecretName)
			}
			for _, item := range v.Secret.Items {
				if m.secret.StringData[item.Key] == "" {
					t.Errorf("the Secret has no %s", item.Key)
				}
			}
		}
	}
	mounts := map[string]string{}
	for _, mount := range container.VolumeMounts {
		if _, ok := volumes[mount.Name]; !ok {
			t.Errorf("there is no volume %s", mount.Name)
		}
		mounts[mount.MountPath] = mount.Name
	}
	for _, e := range container.Env {
		if e.ValueFrom != nil && (e.ValueFrom.SecretKeyRef.Name != m.secret.Name || m.secret.StringData[e.ValueFrom.SecretKeyRef.Key] == "") {
			t.Errorf("the variable %s has no secret", e.Name)
		}
	}
	// The folders to which the image lets the program write: see deploy/Dockerfile.
	for _, path := range []string{"/data", "/config", "/tmp"} {
		if mounts[path] == "" {
			t.Errorf("the root is read-only, and nothing is mounted at %s", path)
		}
	}
	if !slices.Equal(m.claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
		t.Errorf("several pods cannot share the claim: %v", m.claim.Spec.AccessModes)
	}

	// Ports and probes name the port of the container.
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if port := m.service.Spec.Ports[0].TargetPort.String(); ports[port] == 0 {
		t.Errorf("the Service leads to the port %s", port)
	}
	for name, probe := range map[string]*corev1.Probe{
		"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
	} {
		if probe == nil || probe.HTTPGet == nil || ports[probe.HTTPGet.Port.String()] == 0 {
			t.Errorf("the %s probe asks nothing: %+v", name, probe)
		}
	}

	// The pods are as restricted as the Pod Security Standard "restricted" demands.
	s, c := pod.SecurityContext, container.SecurityContext
	if !value(s.RunAsNonRoot) || value(s.RunAsUser) != 10001 || value(s.FSGroup) != 10001 ||
		value(s.SeccompProfile).Type != corev1.SeccompProfileTypeRuntimeDefault ||
		c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation || !value(c.ReadOnlyRootFilesystem) ||
		!slices.Equal(value(c.Capabilities).Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("a pod may do more than it needs: %+v, %+v", s, c)
	}
	if value(spec.Strategy.RollingUpdate).MaxUnavailable.String() != "0" || value(spec.Replicas) < 2 {
		t.Errorf("an update leaves nobody who answers: %+v", spec.Strategy.RollingUpdate)
	}
	if m.budget.Spec.MaxUnavailable.IntValue() >= int(value(spec.Replicas)) {
		t.Error("the budget lets all pods go at once")
	}
	if _, tag, _ := strings.Cut(container.Image, ":"); tag == "" || tag == "latest" {
		t.Errorf("the image is %s; pods that start later must not get another version", container.Image)
	}
	caddyfile, err := os.ReadFile(filepath.Join(folder, "Caddyfile"))
	if err != nil || m.config.Data["Caddyfile"] != string(caddyfile) {
		t.Errorf("the ConfigMap does not have the Caddyfile: %v", err)
	}
}

// value returns what p points to, or the zero value if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
