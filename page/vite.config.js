import { defineConfig } from 'vite';

// Fixed names: the files are asked for again each time (ETag), and the module's list stays the same.
export default defineConfig({
  base: '/',
  publicDir: 'public',
  build: {
    outDir: 'built',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/page.js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/page[extname]',
      },
    },
  },
});
