#!/usr/bin/env python3
"""The manifests of docs/deploy/kubernetes: no cluster is here to read them, so their fields are held
against what Kubernetes' API knows, against each other and against profd."""

import json
import os
import re
import subprocess
import sys
import unittest

import helm_chart
from profd_harness import PROFD, REPO, RUNNER, main, profctl, temp_folder
from text_files import read_text, write_text

CHART = os.path.join(REPO, "docs", "deploy", "helm", "profd")
FOLDER = os.path.join(REPO, "docs", "deploy", "kubernetes")
TO_JSON = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"

# The fields each object of the API may have, as far as ours use it (core/v1, apps/v1, batch/v1).
FIELDS = {
    "metadata": "name namespace labels annotations",
    "daemonset": "apiVersion kind metadata spec",
    "daemonset.spec": "selector template updateStrategy minReadySeconds revisionHistoryLimit",
    "job.spec": "template parallelism completions backoffLimit activeDeadlineSeconds "
                "ttlSecondsAfterFinished completionMode",
    "pod": "serviceAccountName automountServiceAccountToken runtimeClassName hostPID hostNetwork hostIPC "
           "dnsPolicy terminationGracePeriodSeconds nodeSelector tolerations containers initContainers "
           "volumes restartPolicy securityContext affinity priorityClassName imagePullSecrets",
    "pod.securityContext": "runAsUser runAsGroup runAsNonRoot fsGroup supplementalGroups seccompProfile",
    "container": "name image imagePullPolicy command args env envFrom ports securityContext resources "
                 "startupProbe readinessProbe livenessProbe volumeMounts workingDir lifecycle",
    "container.securityContext": "runAsUser runAsGroup runAsNonRoot privileged allowPrivilegeEscalation "
                                 "readOnlyRootFilesystem seccompProfile capabilities procMount",
    "capabilities": "add drop",
    "port": "name containerPort hostPort protocol hostIP",
    "probe": "exec httpGet tcpSocket grpc initialDelaySeconds periodSeconds timeoutSeconds "
             "failureThreshold successThreshold terminationGracePeriodSeconds",
    "mount": "name mountPath subPath readOnly mountPropagation subPathExpr",
    "volume": "name configMap secret hostPath emptyDir",
    "hostPath": "path type",
    "toleration": "key operator value effect tolerationSeconds",
    "resources": "requests limits",
}
HOST_PATH_TYPES = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice",
                   "BlockDevice")
LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")


def load(name, folder=FOLDER):
    return parse(read_text(folder, name), name)


def parse(text, name):
    # The system's interpreter has Debian's python3-yaml; ours may be another.
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", TO_JSON], input=text, capture_output=True, text=True,
                              check=False)
        if done.returncode == 0:
            return [document for document in json.loads(done.stdout) if document]
        if "No module named 'yaml'" not in done.stderr:
            raise AssertionError(f"{name}: {done.stderr}")
    if os.environ.get("CI"):
        raise AssertionError("no python3-yaml: scripts/install-deps --for slurm")
    raise unittest.SkipTest("no python3-yaml: scripts/install-deps --for slurm")


class Manifests(unittest.TestCase):

    def known(self, what, value):
        self.assertIsInstance(value, dict, what)
        self.assertLessEqual(set(value), set(FIELDS[what].split()), what)

    def check_container(self, container, volumes):
        self.known("container", container)
        self.assertRegex(container["name"], LABEL)
        self.assertTrue(all(isinstance(word, str) for word in container.get("command", [])))
        for variable in container.get("env", []):
            self.assertEqual(set(variable), {"name", "value"})
            # A number here is refused by the API server.
            self.assertIsInstance(variable["value"], str, variable)
        for port in container.get("ports", []):
            self.known("port", port)
            self.assertRegex(port["name"], r"^[a-z0-9-]{1,15}$")
        for mount in container.get("volumeMounts", []):
            self.known("mount", mount)
            self.assertIn(mount["name"], volumes)
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if probe in container:
                self.known("probe", container[probe])
                self.assertEqual(set(container[probe]["exec"]), {"command"})
        if "securityContext" in container:
            self.known("container.securityContext", container["securityContext"])
            self.known("capabilities", container["securityContext"].get("capabilities", {}))
        self.known("resources", container.get("resources", {}))

    def check_pod(self, pod):
        """The volumes by name."""
        self.known("pod", pod)
        self.known("pod.securityContext", pod.get("securityContext", {}))
        volumes = {}
        for volume in pod.get("volumes", []):
            self.known("volume", volume)
            self.assertEqual(len(volume), 2, volume)
            if "hostPath" in volume:
                self.known("hostPath", volume["hostPath"])
                self.assertIn(volume["hostPath"].get("type", ""), HOST_PATH_TYPES)
            volumes[volume["name"]] = volume
        for toleration in pod.get("tolerations", []):
            self.known("toleration", toleration)
        for container in pod["containers"]:
            self.check_container(container, volumes)
        used = {m["name"] for c in pod["containers"] for m in c.get("volumeMounts", [])}
        self.assertEqual(used, set(volumes), "a volume that is not mounted")
        return volumes

    def daemon(self):
        documents = {(d["kind"], d["metadata"]["name"]): d for d in load("profd.yaml")}
        return documents, documents["DaemonSet", "profd"]

    def test_daemonset(self):
        documents, daemonset = self.daemon()
        self.assertEqual({kind for kind, _ in documents},
                         {"Namespace", "ServiceAccount", "ConfigMap", "DaemonSet"})
        versions = {"DaemonSet": "apps/v1"}
        for (kind, _), document in documents.items():
            self.assertEqual(document["apiVersion"], versions.get(kind, "v1"))
            self.known("metadata", document["metadata"])
            if kind != "Namespace":
                self.assertEqual(document["metadata"]["namespace"], "profd")
        self.known("daemonset", daemonset)
        self.known("daemonset.spec", daemonset["spec"])
        template = daemonset["spec"]["template"]
        self.assertEqual(set(template), {"metadata", "spec"})
        labels = template["metadata"]["labels"]
        for key, value in daemonset["spec"]["selector"]["matchLabels"].items():
            self.assertEqual(labels.get(key), value)
        volumes = self.check_pod(template["spec"])
        self.assertIn(("ConfigMap", volumes["config"]["configMap"]["name"]), documents)
        self.assertIn(("ServiceAccount", template["spec"]["serviceAccountName"]), documents)

    def test_no_more_rights_than_under_systemd(self):
        pod = self.daemon()[1]["spec"]["template"]["spec"]
        self.assertTrue(pod["hostPID"])
        self.assertNotIn("hostIPC", pod)
        self.assertFalse(pod["automountServiceAccountToken"])
        context = pod["containers"][0]["securityContext"]
        self.assertFalse(context["privileged"])
        self.assertFalse(context["allowPrivilegeEscalation"])
        self.assertTrue(context["readOnlyRootFilesystem"])
        self.assertEqual(context["capabilities"]["drop"], ["ALL"])
        unit = read_text(REPO, "systemd", "profd.service.in")
        wanted = {word for line in re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.M)
                  for word in line.split()}
        self.assertEqual({"CAP_" + name for name in context["capabilities"]["add"]}, wanted)
        # Time for the dumps to be completed, and then some.
        stop = int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1])
        self.assertGreater(pod["terminationGracePeriodSeconds"], stop)
        # What it may write: its sockets and its dumps.
        writable = {m["mountPath"] for m in pod["containers"][0]["volumeMounts"]
                    if not m.get("readOnly")}
        self.assertEqual(writable, {"/run/profd", "/var/lib/profd"})

    def test_the_configuration_is_profds(self):
        documents, daemonset = self.daemon()
        text = documents["ConfigMap", "profd"]["data"]["profd.toml"]
        folder = temp_folder(self)
        # The secret, as it is made.
        tls = os.path.join(folder, "tls")
        profctl("tls", "init", tls, "--hosts", "node1", "--users", "alice")
        config = os.path.join(folder, "profd.toml")
        write_text(config, text.replace("/etc/profd/tls", tls))
        done = subprocess.run(RUNNER + [PROFD, "--check-config", "--config", config],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        container = daemonset["spec"]["template"]["spec"]["containers"][0]
        mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
        self.assertEqual(container["command"][0], "profd")
        config = container["command"][container["command"].index("--config") + 1]
        self.assertIn(mounts[config]["subPath"], documents["ConfigMap", "profd"]["data"])
        for path in re.findall(r'"(/etc/profd/tls)/[\w.]+"', text):
            self.assertTrue(mounts[path]["readOnly"])
        ports = {port["name"]: port for port in container["ports"]}
        self.assertIn(f'listen = "0.0.0.0:{ports["metrics"]["containerPort"]}"', text)
        self.assertIn(f'listen = "0.0.0.0:{ports["grpc-tls"]["containerPort"]}"', text)
        for port in ports.values():
            # On the host's network there is no other.
            self.assertEqual(port["containerPort"], port["hostPort"])
        annotations = daemonset["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(annotations["prometheus.io/port"], str(ports["metrics"]["containerPort"]))

    def test_sockets_of_kubernetes_are_where_profd_looks(self):
        container = self.daemon()[1]["spec"]["template"]["spec"]["containers"][0]
        volumes = {v["name"]: v for v in self.daemon()[1]["spec"]["template"]["spec"]["volumes"]}
        read_only = {m["mountPath"]: volumes[m["name"]]["hostPath"]["path"]
                     for m in container["volumeMounts"]
                     if m.get("readOnly") and "hostPath" in volumes[m["name"]]}
        for inside, outside in read_only.items():
            self.assertEqual(inside, outside)
        printed = subprocess.run(RUNNER + [PROFD, "--print-default-config"], capture_output=True,
                                 text=True, check=True).stdout
        kubelet = re.search(r'^#?\s*pod_resources_socket = "(.*)"$', printed, re.M)[1]
        self.assertIn(os.path.dirname(kubelet), read_only)
        # The first that "auto" looks for.
        self.assertIn("/run/containerd", read_only)

    def test_training_pod_reaches_the_socket(self):
        job, = load("training-job.yaml")
        self.assertEqual((job["apiVersion"], job["kind"]), ("batch/v1", "Job"))
        self.known("job.spec", job["spec"])
        pod = job["spec"]["template"]["spec"]
        volumes = self.check_pod(pod)
        self.assertIn(pod["restartPolicy"], ("Never", "OnFailure"))
        self.assertNotIn("hostPID", pod)
        self.assertNotIn("securityContext", pod["containers"][0])
        daemon = self.daemon()[1]["spec"]["template"]["spec"]
        run = {v["name"]: v for v in daemon["volumes"]}["run"]
        self.assertEqual(volumes["profd"]["hostPath"], run["hostPath"])
        mount, = pod["containers"][0]["volumeMounts"]
        self.assertEqual(mount["mountPath"], "/run/profd")
        self.assertTrue(mount["readOnly"])
        # `profctl --k8s app=train` finds it.
        self.assertEqual(job["spec"]["template"]["metadata"]["labels"], {"app": "train"})


def merged(values, changes):
    """Helm's rule for values of the caller's: maps are merged, null removes, the rest is replaced."""
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return changes
    both = {**values, **{key: merged(values.get(key), value) for key, value in changes.items()}}
    return {key: value for key, value in both.items() if value is not None}


class Chart(unittest.TestCase):
    """docs/deploy/helm: rendered by a stand-in for helm, and compared with the manifests."""

    def rendered(self, **changes):
        """{(kind, name): object}"""
        chart, = load("Chart.yaml", CHART)
        values, = load("values.yaml", CHART)
        found = {}
        for name, text in helm_chart.render_chart(CHART, merged(values, changes), chart, "profd").items():
            for document in parse(text, name):
                found[document["kind"], document["metadata"]["name"]] = document
        return found

    def test_its_values_make_the_manifests(self):
        plain = {(d["kind"], d["metadata"]["name"]): d for d in load("profd.yaml") if d["kind"] != "Namespace"}
        rendered = self.rendered()
        configs = [objects["ConfigMap", "profd"]["data"].pop("profd.toml") for objects in (plain, rendered)]
        self.assertEqual(rendered, plain)
        settings = [[line for line in text.splitlines() if not line.lstrip().startswith("#")] for text in configs]
        self.assertEqual(settings[0], settings[1])

    def test_its_version_is_ours(self):
        version = re.search(r"^project\(profd VERSION ([\d.]+)", read_text(REPO, "CMakeLists.txt"), re.M)[1]
        chart, = load("Chart.yaml", CHART)
        self.assertEqual((chart["apiVersion"], chart["appVersion"], chart["version"]), ("v2", version, version))

    def test_without_tls(self):
        rendered = self.rendered(tls={"enabled": False})
        self.assertNotIn("[tls]", rendered["ConfigMap", "profd"]["data"]["profd.toml"])
        text = json.dumps(rendered["DaemonSet", "profd"])
        for word in ("tls", "9465"):
            self.assertNotIn(word, text)

    def test_values_arrive(self):
        rendered = self.rendered(image={"repository": "registry/profd", "tag": "7"}, runtimeClassName="",
                                 metrics={"port": 19464}, nodeSelector={"accelerator": None, "a/b": "c"}, tolerations=[],
                                 extraConfig='[dump]\nmin_free_mb = 3', hostPaths={"containerRuntime": "/run/crio"})
        pod = rendered["DaemonSet", "profd"]["spec"]["template"]["spec"]
        container, = pod["containers"]
        self.assertEqual(container["image"], "registry/profd:7")
        self.assertNotIn("runtimeClassName", pod)
        self.assertEqual((pod["nodeSelector"], pod["tolerations"]), ({"a/b": "c"}, []))
        self.assertEqual(container["ports"][0], {"name": "metrics", "containerPort": 19464, "hostPort": 19464})
        self.assertIn("/run/crio", [mount["mountPath"] for mount in container["volumeMounts"]])
        config = rendered["ConfigMap", "profd"]["data"]["profd.toml"]
        self.assertIn('listen = "0.0.0.0:19464"\n', config)
        self.assertTrue(config.rstrip().endswith("[dump]\nmin_free_mb = 3"), config)

    def test_values_helm_would_refuse_are_refused(self):
        for text in ("{{ .Values.gone }}", "{{ if .Values.a }}x", "{{ .Values.m }}", "{{ include \"x\" . }}"):
            with self.assertRaises(helm_chart.TemplateError, msg=text):
                helm_chart.render(text, {"Values": {"a": 1, "m": {}}})


class Image(unittest.TestCase):
    def test_installed_files_are_packaged(self):
        recipe = read_text(REPO, "docs", "deploy", "container", "Dockerfile")
        self.assertRegex(recipe, r"(?m)^FROM debian:12-slim$")
        packages = re.findall(r"^Package: (.*)$", read_text(REPO, "packaging", "debian", "control"), re.M)
        installed = re.findall(r"/packages/(\w+)_\*", recipe)
        self.assertEqual(installed, ["profd", "profctl"])
        self.assertLessEqual(set(installed), set(packages))
        self.assertIn('ENTRYPOINT ["/usr/sbin/profd"]', recipe)


if __name__ == "__main__":
    main()
