// Headless Chromium with WebGPU computed by SwiftShader on the processor: it needs no graphics card, and has no shader-f16.
import { chromium as driver } from 'playwright-core';
import { chromium } from './chromium.mjs';

const flags = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-features=Vulkan'];

/** A browser of playwright-core. */
export const chromiumWithGpu = () =>
  driver.launch({ executablePath: chromium(), args: ['--headless', '--no-sandbox', ...flags] });
