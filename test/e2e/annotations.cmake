# Programs that are annotated for other tools: Intel's ITT and NVIDIA's NVTX.
e2e_methods(annotations annotations)
